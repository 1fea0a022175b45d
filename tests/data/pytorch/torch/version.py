import os

__version__ = "2.99.0"
cuda = None if os.environ.get("FAKE_TORCH_CPU") else "13.0"
