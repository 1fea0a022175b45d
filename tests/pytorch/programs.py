# A program that torch.profiler records into a file, for what else records it at once.
# usage: programs.py resnet|llama|compiled OUT.json [stack]
#
# resnet: steps of a ResNet-18 with AMP. llama: steps of a small Llama of transformers, and tokens
# that it generates. compiled: steps of a module that torch.compile has compiled. On a GPU if there
# is one. With `stack` the calls of Python are recorded, too.
import sys

import torch
from torch.profiler import ProfilerActivity, profile, record_function

torch.manual_seed(1)
cuda = torch.cuda.is_available()
device = "cuda" if cuda else "cpu"


def training(model, images, labels, loss_of):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    scaler = torch.amp.GradScaler(device, enabled=cuda)

    def step():
        with record_function("forward"), torch.autocast(device, enabled=cuda):
            loss = loss_of(model, images, labels)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    return step


def classified(model, images, labels):
    return torch.nn.functional.cross_entropy(model(images), labels)


def resnet():
    import torchvision

    images = torch.randn(4, 3, 64, 64, device=device)
    labels = torch.randint(0, 1000, (4,), device=device)
    return training(torchvision.models.resnet18().to(device), images, labels, classified)


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(hidden_size=128, intermediate_size=256, num_hidden_layers=2,
                         num_attention_heads=4, num_key_value_heads=2, vocab_size=512)
    model = LlamaForCausalLM(config).to(device)
    tokens = torch.randint(0, 512, (2, 16), device=device)
    step = training(model, tokens, tokens, lambda model, x, y: model(x, labels=y).loss)

    def both():
        step()
        with torch.no_grad():
            model.generate(tokens, max_new_tokens=2, do_sample=False)

    return both


def compiled():
    model = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.GELU(), torch.nn.LayerNorm(64),
                                torch.nn.Linear(64, 4)).to(device)
    x, y = torch.randn(16, 8, device=device), torch.randint(0, 4, (16,), device=device)
    return training(torch.compile(model), x, y, classified)


step = {"resnet": resnet, "llama": llama, "compiled": compiled}[sys.argv[1]]()
for _ in range(3):
    step()
activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * cuda
with profile(activities=activities, record_shapes=True, profile_memory=True,
             with_stack="stack" in sys.argv) as profiler:
    for _ in range(2):
        step()
    if cuda:
        torch.cuda.synchronize()
profiler.export_chrome_trace(sys.argv[2])
