from torch import nn

def conv_bn(cin, cout, stride):
    layers = [
        nn.Conv2d(cin, cout, kernel_size=3, stride=stride, padding=1),  #> found; site module type=Conv2d bias=true
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
    ]
    return nn.Sequential(*layers)

def stem(cin, cout):
    return nn.Sequential(conv_bn(cin, cout, 2), conv_bn(cout, cout, 1))
