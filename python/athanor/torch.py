"""Data order that survives interruptions, for torch's DataLoader.

    sampler = athanor.torch.ResumableSampler(dataset, seed=7)
    loader = athanor.torch.ResumableLoader(DataLoader(dataset, batch_size=32, sampler=sampler))
    loader.load_state_dict(saved["data"])          # when resuming
    for epoch in range(loader.epoch, epochs):
        for batch in loader:
            train(batch)
            ... {"model": model.state_dict(), "data": loader.state_dict()} ...

The order of an epoch is a function of (seed, epoch), computed index by index: no list of all
samples is made or saved. Of this only ResumableLoader needs torch; numpy makes it faster.
"""

try:
    from torch.utils.data import Sampler as _Sampler
except ImportError:
    _Sampler = object
try:
    import numpy as _np
except ImportError:
    _np = None

__all__ = ["Permutation", "ResumableLoader", "ResumableSampler"]

_MASK = (1 << 64) - 1
_ROUNDS = 8
_BLOCK = 4096  # indices computed at once
_STRIDE, _M1, _M2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def _mix(x):
    """A 64-bit number; each bit depends on all of x."""
    x = (x ^ (x >> 30)) * _M1 & _MASK
    x = (x ^ (x >> 27)) * _M2 & _MASK
    return x ^ (x >> 31)


def _mix_array(x):
    x = (x ^ (x >> _np.uint64(30))) * _np.uint64(_M1)
    x = (x ^ (x >> _np.uint64(27))) * _np.uint64(_M2)
    return x ^ (x >> _np.uint64(31))


class Permutation:
    """A permutation of range(n) keyed by (seed, epoch): p[i], in constant memory.

    A Feistel network over the smallest power of two that holds n; what falls outside is sent
    round again until it falls inside. Either half may be the wider one, as only whole bits are
    exchanged: each round adds to one half a function of the other, which can be undone.
    """

    def __init__(self, n, seed, epoch):
        self.n = n
        bits = max(1, (n - 1).bit_length())
        self._low = bits - bits // 2
        self._masks = (1 << bits // 2) - 1, (1 << self._low) - 1
        key = _mix((_mix(seed & _MASK) + epoch * _STRIDE) & _MASK)
        self._keys = [_mix((key + i * _STRIDE) & _MASK) for i in range(1, _ROUNDS + 1)]

    def __getitem__(self, index):
        high_mask, low_mask = self._masks
        while True:
            high, low = index >> self._low, index & low_mask
            for i in range(0, _ROUNDS, 2):
                high ^= _mix((low + self._keys[i]) & _MASK) & high_mask
                low ^= _mix((high + self._keys[i + 1]) & _MASK) & low_mask
            index = high << self._low | low
            if index < self.n:
                return index

    def many(self, positions):
        """The images of a range, as a list."""
        if _np is None or len(positions) < 16:
            return [self[i] for i in positions]
        indices = _np.arange(positions.start, positions.stop, positions.step, dtype=_np.uint64)
        outside = _np.arange(len(indices))
        while len(outside):
            indices[outside] = self._once(indices[outside])
            outside = outside[indices[outside] >= _np.uint64(self.n)]
        return indices.tolist()

    def _once(self, index):
        shift = _np.uint64(self._low)
        high_mask, low_mask = map(_np.uint64, self._masks)
        high, low = index >> shift, index & low_mask
        for i in range(0, _ROUNDS, 2):
            high ^= _mix_array(low + _np.uint64(self._keys[i])) & high_mask
            low ^= _mix_array(high + _np.uint64(self._keys[i + 1])) & low_mask
        return high << shift | low


class ResumableSampler(_Sampler):
    """Every sample once per epoch, in an order that depends on (seed, epoch) alone.

    Its state is one number: `consumed`, the samples all replicas together have trained on since
    the beginning of the training. From there on replica r of R takes each R-th position, so
    interruptions, other numbers of replicas and of workers change nothing for the order.

    It does not move by itself, as a DataLoader asks for samples long before they are trained
    on: ResumableLoader counts, or the training loop with advance().

    drop_last=False hands out every sample, so that at the end of an epoch some replicas may get
    one more than others; drop_last=True leaves out the fewer than R that are over.
    """

    def __init__(self, data_source, seed=0, shuffle=True, num_replicas=1, rank=0, drop_last=False,
                 consumed=0):
        self.length = data_source if isinstance(data_source, int) else len(data_source)
        self.seed, self.shuffle = int(seed), bool(shuffle)
        self.num_replicas, self.rank = int(num_replicas), int(rank)
        self.drop_last = bool(drop_last)
        if self.length < 1:
            raise ValueError("there are no samples to choose from")
        if not 0 <= self.rank < self.num_replicas:
            raise ValueError("rank %d is not one of %d replicas" % (self.rank, self.num_replicas))
        if self.drop_last and self.length < self.num_replicas:
            raise ValueError("%d samples are not one for each of %d replicas; use drop_last=False"
                             % (self.length, self.num_replicas))
        self.consumed = 0
        self.load_state_dict({"consumed": consumed})

    @property
    def epoch(self):
        """The epoch of the next sample, from 0."""
        return self._bounds()[0] // self.length

    def _bounds(self):
        """(begin, end) of what is left of the epoch, counted as `consumed` is."""
        begin = self.consumed
        left = self.length - begin % self.length
        if self.drop_last and left < self.num_replicas:
            begin, left = begin + left, self.length
        if self.drop_last:
            left -= left % self.num_replicas
        return begin, begin + left

    def _positions(self):
        """This replica's places in the epoch's order, from the next sample on."""
        begin, end = self._bounds()
        first = begin // self.length * self.length
        return range(begin - first + self.rank, end - first, self.num_replicas)

    def __len__(self):
        """This replica's samples left in the epoch."""
        return len(self._positions())

    def __iter__(self):
        # Taken now: while the loader fetches ahead, `consumed` moves.
        return self._walk(Permutation(self.length, self.seed, self.epoch), self._positions())

    def _walk(self, permutation, positions):
        for at in range(0, len(positions), _BLOCK):
            block = positions[at:at + _BLOCK]
            yield from permutation.many(block) if self.shuffle else block

    def advance(self, samples):
        """This replica, and so each of the others, trained on so many samples more."""
        begin, end = self._bounds()
        self.consumed = min(begin + samples * self.num_replicas, end)

    def finish_epoch(self, epoch):
        """That epoch is over, also where a loader with drop_last left some samples out."""
        self.consumed = max(self.consumed, (epoch + 1) * self.length)

    def set_epoch(self, epoch):
        """Goes to the start of another epoch. Does nothing if this is the current epoch."""
        if epoch != self.epoch:
            self.consumed = epoch * self.length

    def state_dict(self):
        """`consumed`; and what must be the same for it to mean the same."""
        return {"consumed": self.consumed, "length": self.length, "seed": self.seed,
                "shuffle": self.shuffle}

    def load_state_dict(self, state):
        for name in ("length", "seed", "shuffle"):
            if name in state and state[name] != getattr(self, name):
                raise ValueError(
                    "this sampler has %s %r, the saved one had %r: the order would be another one; "
                    "pass only {'consumed': N} to go on all the same"
                    % (name, getattr(self, name), state[name]))
        if state["consumed"] < 0:
            raise ValueError("consumed is a count of samples, not %r" % (state["consumed"],))
        self.consumed = int(state["consumed"])


class ResumableLoader:
    """A DataLoader over a ResumableSampler that counts a batch when it is handed out.

    So a state saved in the loop's body, after the step, goes on with the next batch, however
    many more the workers had prepared. An epoch that was interrupted goes on where it was.
    """

    def __init__(self, loader):
        self.loader = loader
        batches = getattr(loader, "batch_sampler", None)
        self.sampler = getattr(batches, "sampler", None) or loader.sampler
        if not isinstance(self.sampler, ResumableSampler):
            raise TypeError("give the DataLoader sampler=athanor.torch.ResumableSampler(dataset)")
        self._batch_size = getattr(batches, "batch_size", None) if batches is not None else 1
        if self._batch_size is None:
            raise TypeError("batches of unknown size: iterate the DataLoader itself and call "
                            "sampler.advance(samples) after each step")

    @property
    def epoch(self):
        return self.sampler.epoch

    def __len__(self):
        """Batches left in the epoch."""
        return len(self.loader)

    def __iter__(self):
        epoch = self.sampler.epoch
        for batch in self.loader:
            self.sampler.advance(self._batch_size)
            yield batch
        self.sampler.finish_epoch(epoch)

    def state_dict(self):
        return self.sampler.state_dict()

    def load_state_dict(self, state):
        self.sampler.load_state_dict(state)
