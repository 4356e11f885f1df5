"""Labels for a program of PyTorch that sets none: the modules of its models, and its operators.

Written into a recording's folder by `gapscope record --label-modules` and `--label-ops`, and imported by the sitecustomize beside
it. It imports nothing of torch by itself: it acts when the program has imported it. No exception leaves it; what went wrong is
in the file `failed`, which the recording's session reads.

A module's label is its path in the model (`blocks.3.attn.qkv`), inside those of the modules around it. Forward, PyTorch's global
hooks of modules begin and end it. Backward, the engine runs the nodes of a graph in the reverse order of their making, so a module's
nodes are a few stretches of that order; a hook on the first node of each stretch switches the label. The nodes compute what they
would without.

Operators are labelled by PyTorch's own observer for NVTX, the one of `torch.autograd.profiler.emit_nvtx`, whose ranges
gapscope's library records.
"""

import atexit
import bisect
import collections
import operator
import os
import sys
import threading
import weakref

_MODULES = 0
# Nodes of one module's own that are looked at, at most.
_MOST_NODES = 4096
# Walks through one model for modules that it did not have before, at most.
_MOST_WALKS = 16
_BACKWARD = b"backward"
# What wrappers of PyTorch put into the paths of the modules that they wrap.
_WRAPPERS = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")

_number = operator.itemgetter(0)
_folder = ""


def begin(folder):
    """Has the labels of GAPSCOPE_LABELS put in place as soon as torch is imported."""
    global _folder
    _folder = folder
    wanted = os.environ.get("GAPSCOPE_LABELS", "").split(",")
    modules, operators = "modules" in wanted, "operators" in wanted
    if not (modules or operators) or not os.environ.get("GAPSCOPE_SPOOL"):
        return
    _tell("python")

    def imported(torch):
        try:
            _put(torch, modules, operators)
            _tell("torch")
        except Exception as error:
            _failed(error)

    if "torch" in sys.modules:
        imported(sys.modules["torch"])
    else:
        sys.meta_path.insert(0, _Finder(imported))


def _tell(name, text=""):
    """Leaves a file for the session; the first of a name stays."""
    try:
        with open(os.path.join(_folder, name), "x") as file:
            file.write(text)
    except OSError:
        pass


def _failed(error):
    _tell("failed", f"{type(error).__name__}: {error}"[:300])


def _hooks_of_process():
    """The function of `_gapscope_hooks.py` beside this file, whose folder is not where modules are looked for any more."""
    from importlib import util

    spec = util.spec_from_file_location("_gapscope_hooks", os.path.join(_folder, "_gapscope_hooks.py"))
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.hooks


class _Finder:
    """Finds torch as it would be found without, and acts when it has been imported."""

    def __init__(self, imported):
        self._imported = imported

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        try:
            sys.meta_path.remove(self)
        except ValueError:
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                try:
                    self._watch(spec.loader)
                except Exception as error:
                    _failed(error)
                return spec
        # Perhaps it comes later.
        sys.meta_path.insert(0, self)
        return None

    def _watch(self, loader):
        def exec_module(module):
            # The loader is again what it was before anybody sees it.
            del loader.exec_module
            loader.exec_module(module)
            self._imported(module)

        loader.exec_module = exec_module


def _put(torch, modules, operators):
    if operators:
        observer = _Observer(torch)
        observer.put()
    if modules:
        _ModuleLabels(torch, observer.on_this_thread if operators else None).put()
    elif operators:
        # For the threads that the program starts.
        _Hidden(torch).pre(lambda module, args: observer.on_this_thread())


class _Hidden:
    """Global hooks of modules, which PyTorch does not count as the program's own.

    It warns about those when a compiled module is called.
    """

    def __init__(self, torch):
        self._module = torch.nn.modules.module
        self._ids = set()
        theirs = getattr(self._module, "_has_any_global_hook", None)
        if theirs is not None:
            self._module._has_any_global_hook = self._has_any_of_others

    def pre(self, hook):
        self._ids.add(self._module.register_module_forward_pre_hook(hook).id)

    def post(self, hook):
        self._ids.add(self._module.register_module_forward_hook(hook, always_call=True).id)

    def _has_any_of_others(self):
        return any(
            hook not in self._ids
            for name in (
                "_global_backward_pre_hooks",
                "_global_backward_hooks",
                "_global_forward_pre_hooks",
                "_global_forward_hooks",
                "_global_forward_hooks_always_called",
                "_global_forward_hooks_with_kwargs",
            )
            for hook in getattr(self._module, name, ())
        )


class _Names:
    """What modules are called: the paths that they have in the first model in which they were seen."""

    def __init__(self):
        # By id, and not by the module itself, whose class may say what is equal.
        self._texts = {}
        self._walks = {}

    def of(self, module, root, parent):
        known = self._texts.get(id(module))
        if known is not None:
            return known[1]
        if root is module:
            self._walk(module)
            # Of a compiled one, the module that was compiled, as in the paths.
            is_compiled = type(module).__name__ == "OptimizedModule"
            inner = getattr(module, "_orig_mod", module) if is_compiled else module
            self._add(module, type(inner).__name__)
        elif self._walks.get(id(root), (None, 0))[1] < _MOST_WALKS:
            self._walk(root)
        known = self._texts.get(id(module))
        if known is None:
            # No part of the model that calls it.
            self._add(module, f"{parent.decode('utf-8', 'replace')}.{type(module).__name__}")
            known = self._texts[id(module)]
        return known[1]

    def _walk(self, root):
        key = id(root)
        gone, walks = self._walks.get(key) or (weakref.ref(root, lambda _: self._walks.pop(key, None)), 0)
        self._walks[key] = (gone, walks + 1)
        for path, module in root.named_modules():
            if path and id(module) not in self._texts:
                self._add(module, ".".join(part for part in path.split(".") if part not in _WRAPPERS) or path)

    def _add(self, module, text):
        key = id(module)
        gone = weakref.ref(module, lambda _: self._texts.pop(key, None))
        self._texts[key] = (gone, text.replace("\0", "\ufffd").encode("utf-8", "replace")[:1024])


class _Call:
    """A module that runs."""

    __slots__ = ("before", "begun", "chain", "children", "module", "pushed", "walked")

    def __init__(self, module, chain, begun, pushed):
        self.module = module
        # Texts, outermost first.
        self.chain = chain
        # The number that the next node of the graph had.
        self.begun = begun
        # From where to where the modules inside made nodes.
        self.children = []
        # The nodes that made what the modules inside take, and the outermost.
        self.before = []
        # What it takes is not known by its arguments, but by where its nodes lead to.
        self.walked = False
        self.pushed = pushed


class _Forward(threading.local):
    """Of a thread that runs modules."""

    def __init__(self):
        self.calls = []
        self.hooks = ()
        # Modules that run while there is nobody to tell, and the outermost.
        self.silent = 0
        self.silent_root = 0
        # From where to where the last outermost modules made nodes.
        self.models = collections.deque(maxlen=64)


class _Backward(threading.local):
    """Of a thread that runs nodes."""

    def __init__(self):
        self.task = None
        self.open = ()
        self.hooks = ()


class _ModuleLabels:
    def __init__(self, torch, on_this_thread):
        self._hooks = _hooks_of_process()
        self._torch = torch
        self._on_this_thread = on_this_thread
        self._names = _Names()
        self._forward = _Forward()
        self._backward = _Backward()
        self._dead = False
        autograd = torch._C._autograd
        self._sequence = getattr(autograd, "_get_sequence_nr", None)
        self._task = getattr(torch._C, "_current_graph_task_id", None)
        self._engine = torch.autograd.Variable._execution_engine
        functorch = getattr(torch._C, "_functorch", None)
        self._transforms = getattr(functorch, "peek_interpreter_stack", None)
        self._no_function = torch._C.DisableTorchFunction

    def put(self):
        compiling = self._torch.compiler.is_compiling
        begin, end = self._begin, self._end

        # Dynamo traces these two, and finds nothing in them.
        def before(module, args):
            if compiling():
                return
            begin(module, args)

        def after(module, args, result):
            if compiling():
                return
            end(module, result)

        hooks = _Hidden(self._torch)
        hooks.post(after)
        hooks.pre(before)

    def _begin(self, module, args):
        if self._dead:
            return
        forward = self._forward
        try:
            if not forward.calls:
                if forward.silent and forward.silent_root != id(module):
                    forward.silent += 1
                    return
                if self._on_this_thread is not None:
                    self._on_this_thread()
                forward.hooks = tuple(hook for hook in self._hooks() if hook.push_layer is not None)
                forward.silent = 0 if forward.hooks else 1
                if forward.silent:
                    forward.silent_root = id(module)
                    return
            elif forward.calls[0].module is module:
                # An exception that no hook is told of has ended it.
                self._unwind(0)
            calls = forward.calls
            outer = calls[-1] if calls else None
            text = self._names.of(module, calls[0].module if calls else module, outer.chain[-1] if outer else b"")
            chain = (*outer.chain, text) if outer else (text,)
            begun = self._next_node()
            pushed = tuple(hook for hook in forward.hooks if hook.push_layer(_MODULES, text, len(text)) == 0)
            call = _Call(module, chain, begun, pushed)
            if begun is not None:
                inputs = self._nodes(args)
                call.walked = not inputs
                (outer or call).before += inputs
            calls.append(call)
        except Exception as error:
            self._die(error)

    def _end(self, module, result):
        if self._dead:
            return
        forward = self._forward
        try:
            if forward.silent:
                forward.silent -= 1
                return
            calls = forward.calls
            at = len(calls) - 1
            while at >= 0 and calls[at].module is not module:
                at -= 1
            if at < 0:
                return
            call = calls[at]
            self._unwind(at)
            if call.begun is None or result is None:
                return
            ended = self._next_node()
            if ended is None or ended <= call.begun:
                return
            starts, before = self._starts_of_stretches(call, result, ended)
            for node in starts:
                node.register_prehook(_Switch(self, call.chain))
            if calls:
                calls[-1].children.append((call.begun, ended))
                if call.walked:
                    calls[-1].before += before
            else:
                self._leave(forward, call, before, ended)
        except Exception as error:
            self._die(error)

    def _leave(self, forward, call, before, ended):
        """A model is over: what made what it takes, and is no part of another model, is in none."""
        nodes = {node._sequence_nr(): node for node in (*before, *call.before)}
        latest = max((number for number in nodes if number < call.begun), default=None)
        if latest is not None and not any(first <= latest < last for first, last in forward.models):
            nodes[latest].register_prehook(_Switch(self, ()))
        forward.models.append((call.begun, ended))

    def _unwind(self, depth):
        """Ends the labels of the modules inside the outermost `depth`."""
        calls = self._forward.calls
        while len(calls) > depth:
            for hook in calls.pop().pushed:
                hook.pop_layer(_MODULES)

    def _next_node(self):
        """The number of the next node of a graph on this thread; none where no graph is made."""
        if self._sequence is None or not self._torch.is_grad_enabled():
            return None
        if self._transforms is not None and self._transforms() is not None:
            return None
        return self._sequence()

    def _nodes(self, values, depth=2):
        """The nodes that made tensors."""
        found = []
        tensor = self._torch.Tensor
        # What overrides functions of tensors shall not see that a node is asked for.
        with self._no_function():
            left = [(values, depth)]
            while left:
                value, depth = left.pop()
                if isinstance(value, tensor):
                    node = value.grad_fn
                    if node is not None:
                        found.append(node)
                elif depth and type(value) in (tuple, list):
                    left.extend((inner, depth - 1) for inner in value[:64])
                elif depth and isinstance(value, dict):
                    left.extend((inner, depth - 1) for inner in list(dict.values(value))[:64])
        return found

    def _starts_of_stretches(self, call, result, ended):
        """Of the nodes that a module made, and not the modules inside it: those before which, backward, others run. And the
        nodes of others to which its own lead."""
        begun, children = call.begun, call.children
        made = self._nodes(result)
        if not children and not call.walked:
            # What its result comes from has the first of them.
            made = [(node._sequence_nr(), node) for node in made]
            made = [(number, node) for number, node in made if begun <= number < ended]
            return [max(made, key=_number)[1]] if made else [], []
        own, before = {}, []
        begins = [first for first, _ in children]
        made += call.before
        while made and len(own) < _MOST_NODES:
            node = made.pop()
            number = node._sequence_nr()
            if number < begun:
                before.append(node)
            elif number < ended and number not in own:
                child = bisect.bisect_right(begins, number) - 1
                if child < 0 or number >= children[child][1]:
                    own[number] = node
                    made += [following for following, _ in node.next_functions if following is not None]
        starts = []
        above = ended
        child = len(children) - 1
        for number in sorted(own, reverse=True):
            others_between = above == ended
            while child >= 0 and children[child][0] > number:
                others_between = True
                child -= 1
            if others_between:
                starts.append(own[number])
            above = number
        return starts, before

    def switch(self, chain):
        """Backward: from now on this thread runs nodes of the module."""
        if self._dead:
            return
        try:
            backward = self._backward
            task = self._task() if self._task is not None else -1
            if task != backward.task or task == -1:
                self._move(backward, ())
                backward.hooks = tuple(hook for hook in self._hooks() if hook.push_layer is not None)
                if not backward.hooks:
                    return
                backward.task = task
                self._engine.queue_callback(lambda: self._finish(task))
            self._move(backward, (_BACKWARD, *chain))
        except Exception as error:
            self._die(error)

    def _move(self, backward, chain):
        """Ends labels and begins others, so that those of `chain` are open."""
        before = backward.open
        common = 0
        while common < len(before) and common < len(chain) and before[common] == chain[common]:
            common += 1
        for hook in backward.hooks:
            for _ in before[common:]:
                hook.pop_layer(_MODULES)
            for text in chain[common:]:
                hook.push_layer(_MODULES, text, len(text))
        backward.open = chain

    def _finish(self, task):
        """A backward pass is over. On another thread than the one that ran its nodes there is nothing to end."""
        try:
            backward = self._backward
            if backward.task == task:
                self._move(backward, ())
                backward.task = None
        except Exception as error:
            self._die(error)

    def _die(self, error):
        """Nothing more is labelled."""
        self._dead = True
        _failed(error)


class _Switch:
    """A hook on a node, which leaves its gradients as they are."""

    __slots__ = ("_chain", "_labels")

    def __init__(self, labels, chain):
        self._labels = labels
        self._chain = chain

    def __call__(self, gradients):
        self._labels.switch(self._chain)


class _Observer:
    """PyTorch's observer of operators for NVTX. It is of a thread, and of those that run its backward passes.

    A thread has one profiler at a time: while the program has its own, ours is away.
    """

    def __init__(self, torch):
        self._torch = torch
        profiler = torch.autograd.profiler
        self._profiler = profiler
        self._enable = profiler._enable_profiler
        self._disable = profiler._disable_profiler
        self._state = threading.local()
        self._dead = False

    def put(self):
        self._profiler._enable_profiler = self._theirs_begins
        self._profiler._disable_profiler = self._theirs_ends
        os.register_at_fork(after_in_child=self._off)
        # PyTorch warns of one that is left at the end.
        atexit.register(self._off)
        # Operators of a process that does not use a GPU are nobody's business.
        self._torch.cuda._lazy_call(self._on)

    def on_this_thread(self):
        if self._torch.cuda.is_initialized():
            self._on()

    def _on(self):
        state = self._state
        if self._dead or getattr(state, "on", False) or getattr(state, "theirs", 0):
            return
        try:
            profiler = self._profiler
            nothing = profiler._ExperimentalConfig()
            config = profiler.ProfilerConfig(profiler.ProfilerState.NVTX, False, False, False, False, False, nothing)
            self._enable(config, set())
            state.on = True
        except Exception as error:
            self._dead = True
            _failed(error)

    def _off(self):
        if getattr(self._state, "on", False):
            self._state.on = False
            try:
                self._disable()
            except Exception as error:
                self._dead = True
                _failed(error)

    def _theirs_begins(self, *arguments, **named):
        self._off()
        try:
            result = self._enable(*arguments, **named)
            self._state.theirs = getattr(self._state, "theirs", 0) + 1
            return result
        finally:
            self.on_this_thread()

    def _theirs_ends(self, *arguments, **named):
        self._off()
        try:
            return self._disable(*arguments, **named)
        finally:
            self._state.theirs = max(getattr(self._state, "theirs", 0) - 1, 0)
            self.on_this_thread()
