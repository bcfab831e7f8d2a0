"""athanor.SummaryWriter: event files that TensorBoard reads, without tensorflow or tensorboard.

    writer = athanor.SummaryWriter()          # in a job: kept with it, its scalars become metrics
    writer.add_scalar("loss", loss, step)
    writer.close()

The methods and their arguments are those of torch.utils.tensorboard. Scalars are written in the
new style; hyper-parameters go into the same run as their metrics, where TensorBoard finds them.
Nothing here raises into training, but for a folder that cannot be written to when the writer is
made: what a method cannot take is left out and said once as a warning (`writer.errors` counts).
Writing happens on a thread of its own; a call costs what making its bytes costs.
"""

import atexit
import math
import os
import socket
import struct
import threading
import time
import warnings

from . import _events as ev

_SCALAR, _TENSOR, _BLOB = 1, 2, 3  # DataClass
_lock = threading.Lock()
_made = 0
_open = set()  # files that were not closed; a writer that is only forgotten loses nothing


def _default_dir():
    inside = os.environ.get("ATHANOR_TENSORBOARD_DIR")
    if inside:
        return inside
    return os.path.join("runs", time.strftime("%b%d_%H-%M-%S") + "_" + socket.gethostname())


class _File:
    """One event file: bytes in, written by a thread, at most `flush_secs` later."""

    def __init__(self, folder, suffix, flush_secs):
        global _made
        os.makedirs(folder, exist_ok=True)
        with _lock:
            serial, _made = _made, _made + 1
        now = time.time()
        name = "events.out.tfevents.%010d.%s.%d.%d%s" % (
            int(now), socket.gethostname(), os.getpid(), serial, suffix)
        self.path = os.path.join(folder, name)
        self.file = open(self.path, "ab")
        self.pid = os.getpid()
        self.flush_secs = flush_secs
        self.waiting = []
        self.size = 0
        self.failed = None
        self.condition = threading.Condition()
        self.closed = False
        self.put(ev.event(now, 0, 3, "brain.Event:2"))
        self.flush()
        _open.add(self)
        self.thread = threading.Thread(target=self._loop, name="athanor-events", daemon=True)
        self.thread.start()

    def put(self, data):
        if self.pid != os.getpid():
            return  # a forked child must not write into its parent's file
        with self.condition:
            self.waiting.append(data)
            self.size += len(data)
            if self.size > 1 << 20:
                self.condition.notify()

    def flush(self):
        if self.pid != os.getpid():
            return
        with self.condition:  # one writer at a time keeps the order
            data = b"".join(self.waiting)
            self.waiting, self.size = [], 0
            try:
                self.file.write(data)
                self.file.flush()
            except (OSError, ValueError) as error:
                self.failed = error

    def _loop(self):
        while True:
            with self.condition:
                self.condition.wait_for(lambda: self.closed or self.size > 1 << 20,
                                        timeout=self.flush_secs)
                closed = self.closed
            self.flush()
            if closed:
                return

    def close(self):
        if self.pid != os.getpid():
            return
        with self.condition:
            self.closed = True
            self.condition.notify()
        if self.thread.is_alive():
            self.thread.join(10)
        self.flush()
        self.file.close()
        _open.discard(self)


def _quiet(method):
    """Telemetry never raises into training."""
    def call(self, *args, **more):
        try:
            return method(self, *args, **more)
        except Exception as error:
            self._failed(method.__name__, error)
    call.__name__ = method.__name__
    call.__doc__ = method.__doc__
    return call


def _number(value):
    if hasattr(value, "item"):
        value = value.item()
    return float(value)


def _numbers(values):
    """A flat list of floats from a tensor, an array or any nesting of lists."""
    array = _array(values)
    if array is not None:
        return [float(v) for v in array.reshape(-1).tolist()]
    out = []
    stack = [values]
    while stack:
        value = stack.pop()
        if isinstance(value, (list, tuple)):
            stack.extend(reversed(value))
        else:
            out.append(_number(value))
    return out


def _array(values):
    """As a numpy array, or None where there is no numpy."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        if str(values.dtype) == "torch.bfloat16":
            values = values.float()
        values = values.numpy()
    try:
        import numpy
    except ImportError:
        return None
    return numpy.asarray(values)


def _buckets(values, count):
    """[left, right, count] of equal width over the finite values, as TensorBoard's own writer."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return []
    low, high = min(finite), max(finite)
    if low == high:
        return [[low, low, 0.0]] * (count - 1) + [[low, high, float(len(finite))]]
    width = (high - low) / count
    counts = [0.0] * count
    for value in finite:
        counts[min(int((value - low) / width), count - 1)] += 1
    return [[low + i * width, high if i + 1 == count else low + (i + 1) * width, counts[i]]
            for i in range(count)]


class SummaryWriter:
    def __init__(self, log_dir=None, comment="", purge_step=None, max_queue=10, flush_secs=2,
                 filename_suffix=""):
        self.log_dir = str(log_dir) if log_dir else _default_dir() + (comment or "")
        self.errors = 0
        self._suffix = filename_suffix
        self._flush_secs = flush_secs
        self._described = set()
        self._warned = set()
        self._subs = {}
        self._file = _File(self.log_dir, filename_suffix, flush_secs)
        if purge_step is not None:
            # SessionLog START: readers drop what an earlier writer left from this step on.
            self._file.put(ev.event(time.time(), purge_step, 7, ev.integer(1, 1)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def get_logdir(self):
        return self.log_dir

    @_quiet
    def add_scalar(self, tag, scalar_value, global_step=None, walltime=None, new_style=True,
                   double_precision=False):
        value = _number(scalar_value)
        if double_precision:
            body = ev.tensor(ev.DOUBLE, (), (value,))
        else:
            body = ev.tensor(ev.FLOAT, (), (value,))
        self._value(tag, body, "scalars", b"", _SCALAR, global_step, walltime)

    @_quiet
    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None):
        """One sub-run per key, so that TensorBoard draws them in one chart."""
        for key, value in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, (main_tag + "_" + str(key)).replace("/", "_"))
            if folder not in self._subs:
                self._subs[folder] = SummaryWriter(folder, flush_secs=self._flush_secs,
                                                   filename_suffix=self._suffix)
            self._subs[folder].add_scalar(main_tag, value, global_step, walltime)

    @_quiet
    def add_histogram(self, tag, values, global_step=None, bins="tensorflow", walltime=None,
                      max_bins=None):
        count = bins if isinstance(bins, int) else 30
        array = _array(values)
        if array is not None and array.size > 0:
            import numpy
            array = array.reshape(-1).astype(numpy.float64)
            array = array[numpy.isfinite(array)]
            if array.size and array.min() < array.max():
                counts, edges = numpy.histogram(array, bins=count)
                rows = [[float(edges[i]), float(edges[i + 1]), float(counts[i])]
                        for i in range(count)]
            else:
                rows = _buckets(array.tolist(), count)
        else:
            rows = _buckets(_numbers(values), count)
        flat = [number for row in rows for number in row]
        self._value(tag, ev.tensor(ev.DOUBLE, (len(rows), 3), flat), "histograms", b"", _TENSOR,
                    global_step, walltime)

    @_quiet
    def add_image(self, tag, img_tensor, global_step=None, walltime=None, dataformats="CHW"):
        width, height, data = _encode_image(img_tensor, dataformats)
        self._images(tag, width, height, [data], global_step, walltime)

    @_quiet
    def add_images(self, tag, img_tensor, global_step=None, walltime=None, dataformats="NCHW"):
        array = _need_array(img_tensor)
        order = dataformats.upper()
        array = array.swapaxes(0, order.index("N")) if order.index("N") else array
        encoded = [_encode_image(one, order.replace("N", "")) for one in array]
        self._images(tag, encoded[0][0], encoded[0][1], [data for _, _, data in encoded],
                     global_step, walltime)

    @_quiet
    def add_figure(self, tag, figure, global_step=None, close=True, walltime=None):
        """A matplotlib figure."""
        import io
        out = io.BytesIO()
        figure.savefig(out, format="png")
        width, height = struct.unpack(">II", out.getvalue()[16:24])
        self._images(tag, width, height, [out.getvalue()], global_step, walltime)
        if close:
            import matplotlib.pyplot
            matplotlib.pyplot.close(figure)

    @_quiet
    def add_audio(self, tag, snd_tensor, global_step=None, sample_rate=44100, walltime=None):
        data = ev.wav(_numbers(snd_tensor), int(sample_rate))
        self._value(tag, ev.tensor(ev.STRING, (1, 2), [data, b""]), "audio", ev.integer(2, 11),
                    _BLOB, global_step, walltime)

    @_quiet
    def add_text(self, tag, text_string, global_step=None, walltime=None):
        """Markdown."""
        self._value(tag, ev.tensor(ev.STRING, (1,), [text_string]), "text", b"", _TENSOR,
                    global_step, walltime)

    @_quiet
    def add_pr_curve(self, tag, labels, predictions, global_step=None, num_thresholds=127,
                     weights=None, walltime=None):
        labels = [bool(value) for value in _numbers(labels)]
        predictions = _numbers(predictions)
        weights = _numbers(weights) if weights is not None else [1.0] * len(labels)
        rows = _pr_curve(labels, predictions, weights, int(num_thresholds))
        flat = [number for row in rows for number in row]
        self._value(tag, ev.tensor(ev.FLOAT, (6, int(num_thresholds)), flat), "pr_curves",
                    ev.integer(2, num_thresholds), _TENSOR, global_step, walltime)

    @_quiet
    def add_hparams(self, hparam_dict, metric_dict=None, hparam_domain_discrete=None,
                    run_name=None, global_step=None):
        """Into this run, not a sub-run; metrics as scalars that the HParams tab shows."""
        metric_dict = metric_dict or {}
        infos, start = b"", b""
        for name, value in hparam_dict.items():
            kind, packed = _hparam(value)
            info = ev.text(1, name) + ev.integer(4, kind)
            domain = (hparam_domain_discrete or {}).get(name)
            if domain:
                listed = b"".join(ev.text(1, _hparam(one)[1]) for one in domain)
                info += ev.text(5, listed)
            infos += ev.text(4, info)
            start += ev.text(1, ev.text(1, name) + ev.text(2, packed))
        for name in metric_dict:
            infos += ev.text(5, ev.text(1, ev.text(2, name)))
        now = time.time()
        start += ev.text(4, run_name or "") if run_name else b""
        start += ev.double(5, now)
        for tag, field, body in (("experiment", 2, infos), ("session_start_info", 3, start),
                                 ("session_end_info", 4, ev.integer(1, 1) + ev.double(2, now))):
            self._value("_hparams_/" + tag, ev.tensor(ev.FLOAT, (0,), ()), "hparams",
                        ev.text(field, body), _TENSOR, None, now, always=True)
        for name, value in metric_dict.items():
            self.add_scalar(name, value, global_step)

    @_quiet
    def add_graph(self, model, input_to_model=None, verbose=False, use_strict_trace=True):
        """The operations of a torch module, as torch.jit.trace sees them."""
        self._file.put(ev.event(time.time(), 0, 4, _graph(model, input_to_model,
                                                          use_strict_trace)))

    def flush(self):
        self._file.flush()
        for sub in self._subs.values():
            sub.flush()
        if self._file.failed:
            self._failed("flush", self._file.failed)

    def close(self):
        self._file.close()
        for sub in self._subs.values():
            sub.close()
        if self._file.failed:
            self._failed("close", self._file.failed)

    def _images(self, tag, width, height, encoded, step, walltime):
        body = ev.tensor(ev.STRING, (2 + len(encoded),),
                         [str(width), str(height)] + encoded)
        self._value(tag, body, "images", b"", _BLOB, step, walltime)

    def _value(self, tag, body, plugin, content, data_class, step, walltime, always=False):
        value = ev.text(1, tag) + ev.text(8, body)
        if always or tag not in self._described:
            self._described.add(tag)
            value += ev.text(9, ev.metadata(plugin, content, data_class))
        now = time.time() if walltime is None else float(walltime)
        step = 0 if step is None else int(_number(step))
        self._file.put(ev.event(now, step, 5, ev.text(1, value)))

    def _failed(self, method, error):
        self.errors += 1
        if method not in self._warned:
            self._warned.add(method)
            warnings.warn("athanor.SummaryWriter.%s was left out: %s: %s"
                          % (method, type(error).__name__, error), stacklevel=4)


@atexit.register
def _flush_all():
    for file in list(_open):
        file.flush()


def _need_array(values):
    array = _array(values)
    if array is None:
        raise TypeError("images need numpy")
    return array


def _encode_image(values, dataformats):
    import numpy
    array = _need_array(values)
    order = dataformats.upper()
    if len(order) != array.ndim:
        raise ValueError("%s for an array of %d dimensions" % (dataformats, array.ndim))
    if order == "HW":
        array = array[:, :, None]
    else:
        array = array.transpose(order.index("H"), order.index("W"), order.index("C"))
    if array.dtype != numpy.uint8:
        array = numpy.clip(numpy.nan_to_num(array.astype(numpy.float64)) * 255.0, 0, 255)
        array = array.astype(numpy.uint8)
    height, width, channels = array.shape
    array = numpy.ascontiguousarray(array)
    return width, height, ev.png(width, height, channels,
                                 (array[row].tobytes() for row in range(height)))


def _pr_curve(labels, predictions, weights, thresholds):
    """TP, FP, TN, FN, precision and recall at thresholds from 0 to 1."""
    positive, negative = [0.0] * thresholds, [0.0] * thresholds
    for label, prediction, weight in zip(labels, predictions, weights):
        bucket = int(math.floor(min(max(prediction, 0.0), 1.0) * (thresholds - 1)))
        (positive if label else negative)[bucket] += weight

    def at_least(counts):
        out, total = [], 0.0
        for count in reversed(counts):
            total += count
            out.append(total)
        return out[::-1]

    tp, fp = at_least(positive), at_least(negative)
    tn = [fp[0] - value for value in fp]
    fn = [tp[0] - value for value in tp]
    tiny = 1e-7
    precision = [t / max(tiny, t + f) for t, f in zip(tp, fp)]
    recall = [t / max(tiny, t + f) for t, f in zip(tp, fn)]
    return tp, fp, tn, fn, precision, recall


def _hparam(value):
    """(DataType of the HParams plug-in, google.protobuf.Value)"""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool):
        return 2, ev.integer(4, value)
    if isinstance(value, (int, float)):
        return 3, ev.double(2, float(value))
    return 1, ev.text(3, str(value))


def _graph(model, inputs, strict):
    import torch
    was = model.training
    model.eval()
    try:
        with torch.no_grad():
            traced = torch.jit.trace(model, inputs, strict=strict, check_trace=False)
    finally:
        model.train(was)
    graph = traced.inlined_graph
    nodes, names = [], {}

    def node(name, op, sources):
        body = ev.text(1, name) + ev.text(2, op)
        nodes.append(ev.text(1, body + b"".join(ev.text(3, source) for source in sources)))

    for value in list(graph.inputs())[1:]:  # the first is the module itself
        names[value.debugName()] = "input/" + value.debugName()
        node(names[value.debugName()], "IO Node", [])
    for index, one in enumerate(graph.nodes()):
        if one.kind() in ("prim::GetAttr", "prim::Constant"):
            continue
        name = "%s/%d" % (_scope(one), index)
        sources = [names[value.debugName()] for value in one.inputs() if value.debugName() in names]
        for value in one.outputs():
            names[value.debugName()] = name
        node(name, one.kind(), sources)
    for value in graph.outputs():
        if value.debugName() in names:
            node("output/" + value.debugName(), "IO Node", [names[value.debugName()]])
    return b"".join(nodes) + ev.text(4, ev.integer(1, 22))  # VersionDef: producer


def _scope(node):
    """"__module.layer1/__module.layer1.conv" -> "layer1/conv", with the operation at its end."""
    scope = node.scopeName().rpartition("/")[2].replace("__module.", "").replace(".", "/")
    return (scope + "/" if scope else "") + node.kind().replace("::", "_")
