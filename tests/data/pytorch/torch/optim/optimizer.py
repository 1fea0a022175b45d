"""Optimizers with PyTorch's hook after every step of any of them."""

_global_hooks = []


def register_optimizer_step_post_hook(hook):
    _global_hooks.append(hook)


class SGD:
    def step(self):
        for hook in _global_hooks:
            hook(self, (), {})
