"""Draws a 10-class data set in CIFAR-10's python layout: python source/pictures.py FOLDER

The real one cannot be downloaded everywhere. A class here is the direction and the width of
stripes; colours, places and much noise are random. Names and layout of the files are the real
ones', with fewer pictures, and pixels as bytes instead of an array.
"""

import os
import pickle
import sys

import numpy as np


def draw(count, seed):
    random = np.random.default_rng(seed)
    labels = random.integers(0, 10, count)
    y, x = np.mgrid[0:32, 0:32]
    angle = (labels % 5 * np.pi / 5)[:, None, None]
    width = np.where(labels < 5, 0.5, 1.1)[:, None, None]
    place = random.uniform(0, 6.3, (count, 1, 1))
    stripes = np.sin(width * (x * np.cos(angle) + y * np.sin(angle)) + place) > 0
    ground = random.uniform(0, 110, (count, 3, 1, 1))
    ink = random.uniform(140, 255, (count, 3, 1, 1))
    images = np.where(stripes[:, None], ink, ground) + random.normal(0, 90, (count, 3, 32, 32))
    # Plain bytes: arrays that a new numpy pickled cannot be read by the numpy of an older torch.
    return {"data": np.clip(images, 0, 255).astype(np.uint8).tobytes(),
            "labels": [int(label) for label in labels]}


def write(folder):
    folder = os.path.join(folder, "cifar-10-batches-py")
    os.makedirs(folder, exist_ok=True)
    for seed, (name, count) in enumerate([("data_batch_1", 1000), ("data_batch_2", 1000),
                                          ("test_batch", 500)]):
        with open(os.path.join(folder, name), "wb") as file:
            pickle.dump(draw(count, seed), file)


if __name__ == "__main__":
    write(sys.argv[1])
