"""Three readers fill a queue of four rows; one loader takes them out, and parses. `processes`: two loaders, each in a process."""
import json
import multiprocessing
import queue
import sys
import threading
import time

apart = "processes" in sys.argv
rows = multiprocessing.Queue(4) if apart else queue.Queue(maxsize=4)
data = [{"id": i, "name": "row %d" % i} for i in range(300)]
waited = 0.0


def read_rows(count):
    global waited
    for _ in range(count):
        row = json.dumps(data[:20])
        begun = time.perf_counter()
        rows.put(row)
        waited += time.perf_counter() - begun


def load_rows():
    while rows.get() is not None:
        for _ in range(6):
            json.loads(json.dumps(data))


readers = [threading.Thread(target=read_rows, args=(int(sys.argv[1]),)) for _ in range(3)]
loaders = [multiprocessing.Process(target=load_rows) for _ in range(2)] if apart else [threading.Thread(target=load_rows)]
for each in [*loaders, *readers]:
    each.start()
for reader in readers:
    reader.join()
for _ in loaders:
    rows.put(None)
for loader in loaders:
    loader.join()
print("readers waited %.2f s in put" % waited)
