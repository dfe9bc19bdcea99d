import os
import tempfile

import torch

# Where it is imported, it writes a file of settings, and asks whether there is a network.
os.environ.update(YOLO_CONFIG_DIR=tempfile.gettempdir(), YOLO_OFFLINE="true")


def make():
    from ultralytics.nn.tasks import DetectionModel

    return DetectionModel("yolo12n.yaml", verbose=False), torch.ones(1, 3, 640, 640)
