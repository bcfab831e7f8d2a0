"""The data order: a permutation, the same after any interruption."""

import importlib.util
import itertools
import random
import unittest
from collections import Counter

import athanor.torch
from athanor.torch import Permutation, ResumableLoader, ResumableSampler

HAVE_TORCH = importlib.util.find_spec("torch") is not None
HAVE_NUMPY = importlib.util.find_spec("numpy") is not None
SIZES = sorted({n for k in range(1, 12) for n in (2**k - 1, 2**k, 2**k + 1)} | {5, 13, 97, 1009})


class PermutationTest(unittest.TestCase):
    def test_every_size_is_a_bijection(self):
        for n in SIZES:
            for seed, epoch in ((0, 0), (7, 3), (-1, 1), (2**80, 10**9)):
                images = Permutation(n, seed, epoch).many(range(n))
                self.assertEqual(sorted(images), list(range(n)), (n, seed, epoch))

    @unittest.skipUnless(HAVE_NUMPY, "numpy is not installed: there is one way only")
    def test_arrays_and_single_numbers_give_the_same(self):
        for n in SIZES + [10**6 + 3, 2**40 + 1, 2**62]:
            permutation = Permutation(n, 5, 2)
            for start, stop, step in ((0, min(n, 200), 1), (n // 2, min(n, n // 2 + 300), 7)):
                positions = range(start, stop, step)
                self.assertEqual(permutation.many(positions), [permutation[i] for i in positions])

    def test_seeds_and_epochs_give_orders_of_their_own(self):
        orders = {tuple(Permutation(50, seed, epoch).many(range(50)))
                  for seed in range(40) for epoch in range(40)}
        self.assertEqual(len(orders), 1600)

    def test_no_place_prefers_a_sample(self):
        # The seeds are fixed, so this either always passes or never.
        for n in (3, 7, 10, 33):
            counts = Counter((i, Permutation(n, seed, 0)[i])
                             for seed in range(200 * n) for i in range(n))
            self.assertEqual(len(counts), n * n)
            self.assertTrue(all(120 < count < 280 for count in counts.values()), n)

    def test_neighbours_are_torn_apart(self):
        n = 5000
        images = Permutation(n, 3, 1).many(range(n))
        near = sum(abs(a - b) < 10 for a, b in zip(images, images[1:]))
        self.assertLess(near, 60)  # 20 are to be expected by chance
        rising = sum(a < b for a, b in zip(images, images[1:]))
        self.assertTrue(2350 < rising < 2650)

    def test_the_order_is_the_same_in_every_version(self):
        # A saved `consumed` means nothing if this changes.
        self.assertEqual(Permutation(10, 7, 0).many(range(10)), [4, 0, 5, 9, 6, 7, 2, 1, 8, 3])
        self.assertEqual([Permutation(2**40 + 1, 7, 1)[i] for i in range(3)],
                         [722942938733, 805850139958, 439378519257])


def take(sampler, steps, batch):
    """What one replica trains on in so many steps, or up to the end of the epoch."""
    epoch = sampler.epoch
    indices = list(itertools.islice(iter(sampler), steps * batch))
    for _ in range(len(indices) // batch):
        sampler.advance(batch)
    if len(indices) < steps * batch:
        sampler.finish_epoch(epoch)
    return indices


class SamplerTest(unittest.TestCase):
    def test_five_interruptions_with_other_replica_counts_lose_and_repeat_nothing(self):
        numbers = random.Random(11)
        for n in (1, 2, 7, 64, 101, 257):
            for _ in range(10):
                seen, consumed, cuts = [], 0, 0
                while consumed < n:
                    replicas = numbers.choice((1, 2, 3, 5))
                    samplers = [ResumableSampler(n, 3, num_replicas=replicas, rank=rank,
                                                 consumed=consumed) for rank in range(replicas)]
                    batch = numbers.choice((1, 2, 4))
                    steps = numbers.randrange(1, n // 10 + 2) if cuts < 5 else n
                    seen += sum((take(sampler, steps, batch) for sampler in samplers), [])
                    self.assertEqual(len({sampler.consumed for sampler in samplers}), 1)
                    consumed = samplers[0].consumed
                    self.assertEqual(len(seen), consumed)
                    cuts += 1
                self.assertEqual(sorted(seen), list(range(n)))

    def test_an_interrupted_run_sees_the_order_of_an_undisturbed_one(self):
        whole = ResumableSampler(100, seed=9)
        order = []
        for epoch in range(3):
            whole.set_epoch(epoch)
            order += list(whole)
        again = ResumableSampler(100, seed=9)
        seen = []
        for count in (7, 93, 1, 60, 39, 100):
            seen += list(itertools.islice(iter(again), count))
            again.advance(count)
            state = again.state_dict()
            again = ResumableSampler(100, seed=9)
            again.load_state_dict(state)
        self.assertEqual(seen, order)
        self.assertEqual(again.epoch, 3)

    def test_fetching_ahead_moves_nothing(self):
        sampler = ResumableSampler(50)
        first = iter(sampler)
        ahead = [next(first) for _ in range(30)]
        sampler.advance(10)
        self.assertEqual(list(itertools.islice(iter(sampler), 20)), ahead[10:])
        self.assertEqual(len(sampler), 40)

    def test_drop_last_gives_each_replica_as_much(self):
        samplers = [ResumableSampler(10, num_replicas=4, rank=r, drop_last=True) for r in range(4)]
        self.assertEqual([len(list(sampler)) for sampler in samplers], [2] * 4)
        first = samplers[0]
        first.advance(2)
        self.assertEqual((first.epoch, first.consumed, len(first)), (1, 8, 2))
        first.advance(1)
        self.assertEqual(first.consumed, 14)

    def test_without_shuffling_the_order_is_that_of_the_data(self):
        sampler = ResumableSampler(range(9), shuffle=False, num_replicas=2, rank=1, consumed=3)
        self.assertEqual(list(sampler), [4, 6, 8])

    def test_set_epoch_keeps_the_place_in_the_same_epoch(self):
        sampler = ResumableSampler(10, consumed=23)
        sampler.set_epoch(2)
        self.assertEqual(sampler.consumed, 23)
        sampler.set_epoch(5)
        self.assertEqual(sampler.consumed, 50)

    def test_a_state_of_other_data_is_refused(self):
        state = ResumableSampler(10, seed=1, consumed=4).state_dict()
        for other in (ResumableSampler(11, seed=1), ResumableSampler(10, seed=2),
                      ResumableSampler(10, seed=1, shuffle=False)):
            with self.assertRaises(ValueError):
                other.load_state_dict(state)
            other.load_state_dict({"consumed": 4})
            self.assertEqual(other.consumed, 4)

    def test_wrong_arguments_are_refused(self):
        for arguments in ({"data_source": 0}, {"data_source": 5, "rank": 1},
                          {"data_source": 5, "num_replicas": 6, "drop_last": True},
                          {"data_source": 5, "consumed": -1}):
            with self.assertRaises(ValueError):
                ResumableSampler(**arguments)

    def test_a_huge_set_costs_nothing(self):
        sampler = ResumableSampler(2**50, consumed=2**49)
        self.assertEqual(len(set(itertools.islice(iter(sampler), 10000))), 10000)

    def test_it_works_without_numpy(self):
        with_numpy = list(ResumableSampler(500, seed=2))
        kept, athanor.torch._np = athanor.torch._np, None
        try:
            self.assertEqual(list(ResumableSampler(500, seed=2)), with_numpy)
        finally:
            athanor.torch._np = kept


@unittest.skipUnless(HAVE_TORCH, "torch is not installed")
class LoaderTest(unittest.TestCase):
    """With torch's DataLoader; each item is its own index."""

    def loader(self, n, batch, workers=0, drop_last=False, state=None, **sampler):
        from torch.utils.data import DataLoader
        sampler = ResumableSampler(n, seed=4, **sampler)
        if state is not None:
            sampler.load_state_dict(state)
        return ResumableLoader(DataLoader(range(n), batch_size=batch, sampler=sampler,
                                          num_workers=workers, drop_last=drop_last))

    @staticmethod
    def train(loaders, until):
        """Replicas in lockstep to the end of the epoch, or until so many samples were taken."""
        iterators = [iter(loader) for loader in loaders]
        taken = []
        while len(taken) < until:
            batches = [next(iterator, None) for iterator in iterators]
            if batches[0] is None:
                return taken
            for batch in batches:
                taken += [] if batch is None else batch.tolist()
        for iterator in iterators:  # interrupted: what was fetched ahead is lost
            iterator.close()
        return taken

    def test_each_sample_once_an_epoch_through_five_interruptions(self):
        numbers, n, epochs = random.Random(5), 203, 2
        cuts = sorted(numbers.sample(range(1, n * epochs), 5)) + [n * epochs]
        seen, state = [], None
        for cut, workers, replicas in zip(cuts, (0, 2, 1, 0, 2, 1), (1, 2, 3, 1, 4, 2)):
            loaders = [self.loader(n, 3, workers, state=state, num_replicas=replicas, rank=rank)
                       for rank in range(replicas)]
            while len(seen) < cut:
                seen += self.train(loaders, cut - len(seen))
                self.assertEqual({loader.sampler.consumed for loader in loaders}, {len(seen)})
            state = loaders[0].state_dict()
        self.assertEqual(len(seen), n * epochs)
        for epoch in range(epochs):
            self.assertEqual(sorted(seen[epoch * n:(epoch + 1) * n]), list(range(n)))

    def test_epochs_follow_each_other_with_a_tail_that_is_dropped(self):
        loader = self.loader(10, 4, drop_last=True)
        batches = [[b.tolist() for b in loader] for _ in range(3)]
        self.assertEqual([len(epoch) for epoch in batches], [2, 2, 2])
        self.assertEqual((loader.epoch, loader.sampler.consumed), (3, 30))
        # Interrupted after the last batch of the first epoch: the rest is what it would have been.
        again = self.loader(10, 4, drop_last=True, state={"consumed": 8})
        self.assertEqual([[b.tolist() for b in again] for _ in range(3)], [[]] + batches[1:])

    def test_a_replica_without_samples_keeps_up(self):
        loaders = [self.loader(2, 4, num_replicas=3, rank=rank) for rank in range(3)]
        self.assertEqual(len(self.train(loaders, 99)), 2)
        self.assertEqual([loader.epoch for loader in loaders], [1, 1, 1])

    def test_workers_that_fetch_ahead_do_not_count(self):
        loader = self.loader(100, 5, workers=2)
        for number, _ in enumerate(loader, 1):
            if number == 3:
                break
        self.assertEqual(loader.state_dict()["consumed"], 15)
        self.assertEqual(len(loader), 17)

    def test_single_samples_and_batch_samplers(self):
        from torch.utils.data import BatchSampler, DataLoader
        sampler = ResumableSampler(9, num_replicas=2)
        loader = ResumableLoader(DataLoader(range(9), batch_size=None, sampler=sampler))
        next(iter(loader))
        self.assertEqual(sampler.consumed, 2)
        batches = BatchSampler(sampler, 3, drop_last=False)
        next(iter(ResumableLoader(DataLoader(range(9), batch_sampler=batches))))
        self.assertEqual(sampler.consumed, 8)

    def test_another_sampler_is_refused(self):
        from torch.utils.data import DataLoader
        with self.assertRaises(TypeError):
            ResumableLoader(DataLoader(range(9)))


if __name__ == "__main__":
    unittest.main()
