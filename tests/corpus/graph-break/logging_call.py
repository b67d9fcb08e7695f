import logging
import torch

logger = logging.getLogger(__name__)

class Net(torch.nn.Module):
    def forward(self, x):
        y = self.body(x)  #> cost device_ms=20
        logger.info("mean activation %s", y.shape)
        #^ found; cost cpu_ms=2 idle_ms=2; event graph_break reason="Logger not supported for non-export cases"
        return self.head(y)  #> cost device_ms=3

net = torch.compile(Net())  #> site compile mode=default
