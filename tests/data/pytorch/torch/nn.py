from torch import add as layer
