from torch.autograd import _disable_profiler, _enable_profiler

_is_profiler_enabled = False


class ProfilerState:
    KINETO, NVTX, ITT = "KINETO", "NVTX", "ITT"


class _ExperimentalConfig:
    pass


class ProfilerConfig:
    def __init__(self, state, shapes, memory, stack, flops, modules, experimental):
        assert isinstance(experimental, _ExperimentalConfig)
        self.state, self.shapes = state, bool(shapes)


def _run_on_profiler_start():
    global _is_profiler_enabled
    _is_profiler_enabled = True


def _run_on_profiler_stop():
    global _is_profiler_enabled
    _is_profiler_enabled = False


class profile:
    state = ProfilerState.KINETO

    def __enter__(self):
        _run_on_profiler_start()
        config = (False, False, False, False, False, _ExperimentalConfig())
        _enable_profiler(ProfilerConfig(self.state, *config), set())
        return self

    def __exit__(self, *_):
        _disable_profiler()
        _run_on_profiler_stop()


class emit_nvtx(profile):
    state = ProfilerState.NVTX


class KinetoStepTracker:
    """Counts iterations: who has said so most often is right."""

    _current_step = 0
    _step_dict = {}

    @classmethod
    def increment_step(cls, requester):
        cls._step_dict[requester] = cls._step_dict.get(requester, 0) + 1
        cls._current_step = max(cls._step_dict.values())
        return cls._current_step
