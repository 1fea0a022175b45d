"""Real programs, for what recording costs them: prints milliseconds of a unit, least and median of
six. usage: real.py llama|resnet [kineto [stack]|floor] [turns]

llama: 64 tokens of a Llama of 16 layers that generates, in half precision. resnet: 20 steps of a
ResNet-50 that trains with AMP. floor: FLOOR's observer (../observer/floor.cpp) around operators.
turns: a quarter of that for each line of the standard input, for `real_in_turns`.
"""
import ctypes, json, os, resource, sys, tempfile, time
import torch

torch.manual_seed(0)
TOKENS, STEPS = (16, 5) if "turns" in sys.argv else (64, 20)


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=16,
                         num_attention_heads=16, num_key_value_heads=8, vocab_size=32000)
    model = LlamaForCausalLM(config).cuda().half().eval()
    prompt = torch.randint(0, 32000, (1, 128), device="cuda")
    return lambda: model.generate(prompt, max_new_tokens=TOKENS, min_new_tokens=TOKENS, do_sample=False)


def resnet():
    import torchvision

    model = torchvision.models.resnet50().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scaler = torch.amp.GradScaler()
    images = torch.randn(32, 3, 128, 128, device="cuda")
    labels = torch.randint(0, 1000, (32,), device="cuda")

    def steps():
        for _ in range(STEPS):
            with torch.autocast("cuda"):
                loss = torch.nn.functional.cross_entropy(model(images), labels)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()

    return steps


work = {"llama": llama, "resnet": resnet}[sys.argv[1]]()


def unit():
    began = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return (time.perf_counter() - began) * 1e3


def profiler_of_torch():
    from torch.profiler import ProfilerActivity, profile

    return profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
                   with_stack="stack" in sys.argv)


def turns():
    """One unit for each line; a profiler runs for two of them, since its first buffers cost extra."""
    print("ready", flush=True)
    for _ in sys.stdin:
        if "kineto" in sys.argv:
            with profiler_of_torch():
                unit()
                took = unit()
        else:
            took = unit()
        print("ms", took, flush=True)


if "floor" in sys.argv:
    maps = (line.split()[-1] for line in open("/proc/self/maps") if "libtorch_cpu.so" in line)
    library = ctypes.CDLL(next(maps))
    assert ctypes.CDLL(os.environ["FLOOR"]).floor_start(ctypes.c_void_p(library._handle), 0) == 0
for _ in range(2):
    unit()
if "turns" in sys.argv:
    turns()
    sys.exit()
said = {}
if "kineto" in sys.argv:
    profiler = profiler_of_torch()
    profiler.start()
    unit()
times = sorted(unit() for _ in range(6))
said.update(least_ms=round(times[0], 1), median_ms=round(times[3], 1))
if "kineto" in sys.argv:
    began = time.perf_counter()
    profiler.stop()
    said["stop_s"] = round(time.perf_counter() - began, 2)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kineto.json")
        began = time.perf_counter()
        profiler.export_chrome_trace(path)
        said["export_s"] = round(time.perf_counter() - began, 2)
        said["file_mb"] = round(os.path.getsize(path) / 1e6, 1)
said["resident_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
print(json.dumps(said), flush=True)
