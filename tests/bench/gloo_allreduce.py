#!/usr/bin/env python3
# tests/bench/gloo_allreduce.py -- the time of gloo's all-reduce, for tools/bench.
#
# Usage: gloo_allreduce.py RANK RANKS PORT RUNS BYTES...
# One process per rank, with PyTorch. Rank 0 prints a line "BYTES SECONDS" for
# each run: in place, floats, from a barrier to the end of the slowest rank.
import sys
import time

import torch
import torch.distributed as dist

rank, ranks, port, runs = (int(a) for a in sys.argv[1:5])
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}",
                        rank=rank, world_size=ranks)
for size in (int(a) for a in sys.argv[5:]):
    values = torch.empty(size // 4, dtype=torch.float32)
    for run in range(runs + 1):
        values.fill_(rank + 1)
        dist.barrier()
        began = time.perf_counter()
        dist.all_reduce(values)
        took = torch.tensor([time.perf_counter() - began], dtype=torch.float64)
        dist.all_reduce(took, op=dist.ReduceOp.MAX)
        if values[-1].item() != ranks * (ranks + 1) / 2:
            sys.exit("a sum is wrong")
        if rank == 0 and run > 0:  # the first one warms up
            print(size, f"{took.item():.9f}", flush=True)
