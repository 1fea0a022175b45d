# Annotates itself with the real ITT package, in every way that it offers.
import ittapi

with ittapi.task("step", domain="solver"):
    with ittapi.task("inner", domain="solver"):
        pass

first = ittapi.task("first", domain="solver", overlapped=True)
second = ittapi.task("second", domain="solver", overlapped=True)
first.begin()
second.begin()
first.end()
second.end()

event = ittapi.event("checkpoint")
event.begin()
event.end()

ittapi.thread_set_name("main of the solver")
ittapi.pause()
with ittapi.task("not recorded", domain="solver"):
    pass
ittapi.resume()
with ittapi.task("recorded", domain="solver"):
    pass
