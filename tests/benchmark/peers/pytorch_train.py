#!/usr/bin/env python3
"""The training shape of train_bench.cpp in PyTorch, with what makes it fastest on a CPU.

    python3 pytorch_train.py VOCABULARY RANKS [STEPS] [--compile]

GPT-2 form, 6 layers, hidden 384, 6 heads, sequence 256, micro-batch 8, fp32, AdamW, tied head, no
clipping, no dropout. Fast: scaled_dot_product_attention (causal), fused AdamW, fused cross-entropy,
zero_grad(set_to_none), one thread a rank, and (--compile) torch.compile, which needs g++. Two ranks
are two processes under DistributedDataParallel over Gloo. The environment has to be right, see
compare_training. The last line is RESULT tokens/s, tokens per second of CPU time.
"""
import os
import statistics
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

LAYERS, HIDDEN, HEADS, SEQ, BATCH, WARM_UP = 6, 384, 6, 256, 8, 2


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
        self.qkv, self.out = nn.Linear(HIDDEN, 3 * HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.up, self.down = nn.Linear(HIDDEN, 4 * HIDDEN), nn.Linear(4 * HIDDEN, HIDDEN)

    def forward(self, x):
        q, k, v = self.qkv(self.ln_1(x)).view(*x.shape[:2], 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(x.shape))
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, HIDDEN), nn.Embedding(SEQ, HIDDEN)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.ln_f = nn.LayerNorm(HIDDEN)
        for p in self.parameters():
            nn.init.normal_(p, std=0.02) if p.dim() > 1 else None

    def forward(self, tokens, labels):
        x = self.wte(tokens) + self.wpe.weight
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def fused_adamw(model):
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=3e-4, betas=(0.9, 0.95), fused=True)


def train(rank, ranks, vocabulary, steps, compiles):
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    model = Gpt(vocabulary)
    if ranks > 1:
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        os.environ.setdefault("MASTER_PORT", "29531")
        torch.distributed.init_process_group("gloo", rank=rank, world_size=ranks)
        model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    optimizer = fused_adamw(model)
    forward = torch.compile(model) if compiles else model
    walls, cpus = [], []
    for step in range(WARM_UP + steps):
        tokens = torch.randint(vocabulary, (BATCH, SEQ + 1))
        wall, cpu = time.perf_counter(), time.process_time()
        loss = forward(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()
        if step >= WARM_UP:
            walls.append(time.perf_counter() - wall)
            cpus.append(time.process_time() - cpu)
    if rank == 0:
        done = ranks * BATCH * SEQ
        wall, cpu = statistics.median(walls), statistics.median(cpus)
        print(f"PyTorch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}"
              f"{', compiled' if compiles else ''}: best step {done / min(walls):.0f} tokens/s")
        print(f"RESULT {done / wall:.1f} {done / cpu:.1f}")
    if ranks > 1:
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    vocabulary, ranks = int(words[0]), int(words[1])
    steps = int(words[2]) if len(words) > 2 else 5
    arguments = (ranks, vocabulary, steps, "--compile" in sys.argv)
    if ranks == 1:
        train(0, *arguments)
    else:
        torch.multiprocessing.spawn(train, arguments, nprocs=ranks)


if __name__ == "__main__":
    main()
