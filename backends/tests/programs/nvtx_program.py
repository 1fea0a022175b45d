# Annotates itself with the real NVTX package, in every way that it offers.
import threading

import numpy as np
import nvtx

nvtx.push_range("plain")
nvtx.push_range("inner", color="red", category="phase", payload=7)
nvtx.pop_range()
nvtx.pop_range()
nvtx.pop_range()  # One too many.

with nvtx.annotate("data", domain="train", color=0x123456, category="io", payload=0.5):
    with nvtx.annotate("batch", domain="train", payload=-3):
        pass
nvtx.mark("list", payload=[1, 2, 3])
nvtx.mark("text", payload=np.array("grün"))
sample = np.zeros((), dtype=[("step", "i4"), ("loss", "f8"), ("dims", "u2", (3,))])
sample["step"], sample["loss"], sample["dims"] = 12, 0.25, (4, 5, 6)
nvtx.mark("struct", payload=sample)

a = nvtx.start_range("a", domain="train")
b = nvtx.start_range("b")
nvtx.end_range(a)
nvtx.end_range(b)

domain = nvtx.get_domain("train")
attributes = domain.get_event_attributes(message="by domain", color="blue")
domain.push_range(attributes)
domain.pop_range()

counter = domain.get_counter("loss", np.float64)
counter.sample(1.5)
counter.sample(0.5)
nvtx.get_domain("train").get_counter("steps", np.int64).sample(3)

worker = threading.Thread(target=lambda: [nvtx.push_range("worker"), nvtx.pop_range()])
worker.start()
worker.join()
