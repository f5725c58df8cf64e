#!/usr/bin/env python3
"""A process of somebody else that sits on a GPU: hold-gpu.py SHARE FILE; FILE is written once it holds SHARE of what is free."""

import sys
import time

import torch

if torch.cuda.is_available():
    held = torch.empty(int(torch.cuda.mem_get_info()[0] * float(sys.argv[1])), dtype=torch.uint8, device="cuda")
with open(sys.argv[2], "w", encoding="utf-8") as file:
    file.write("1")
while True:
    time.sleep(3600)
