"""paddle's LeNet."""

from torch import nn


def first():
    return nn.Sequential(nn.Conv2d(1, 6, 3, padding=1))


def make():
    pool = nn.MaxPool2d(2, 2)
    features = nn.Sequential(first(), nn.ReLU(), pool, nn.Conv2d(6, 16, 5), nn.ReLU(), pool)
    return nn.Sequential(features, nn.Flatten(), nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10))
