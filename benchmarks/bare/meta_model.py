"""Imports PyTorch and transformers, and makes the model of a config.json on meta."""

import json
import sys

import torch
from transformers import AutoConfig, AutoModelForCausalLM

with open(sys.argv[1]) as file:
    settings = json.load(file)
config = AutoConfig.for_model(**settings)
with torch.device("meta"):
    AutoModelForCausalLM.from_config(config)
