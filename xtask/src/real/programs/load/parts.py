"""A pool of two processes shares out uneven parts: one has most of the work."""
import multiprocessing
import sys


def count(rounds):
    value = 1
    for i in range(rounds):
        value = (value * 31 + i) & 0xFFFFFF
    return value


if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        for _ in range(int(sys.argv[1])):
            pool.map(count, [6_000_000] + [200_000] * 7, chunksize=1)
