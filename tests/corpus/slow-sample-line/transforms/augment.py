from pathlib import Path

import numpy as np
from PIL import Image


class Pictures:
    def __init__(self, root):
        self.paths = sorted(Path(root).glob("*.png"))

    def __getitem__(self, i):
        image = np.asarray(Image.open(self.paths[i]))  #> cost cpu_ms=6 idle_ms=6 loader_ms=6
        return self.distort(image), 0  #> cost cpu_ms=0.5 idle_ms=0.5 loader_ms=0.5

    def distort(self, image):
        field = np.random.normal(size=image.shape)
        return blur(field) + image  #> found; cost cpu_ms=70 idle_ms=70 loader_ms=70 calls=64
