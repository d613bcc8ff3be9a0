// Three workers want the lock in shared memory that a fourth keeps while it computes; Atomics.wait. Prints how long they waited.
// "before": they compute before they take it.
const { Worker, isMainThread, workerData, parentPort } = require('worker_threads');
const ROUNDS = 60;

function lock(word) {
  while (Atomics.compareExchange(word, 0, 0, 1) !== 0) Atomics.wait(word, 0, 1);
}

function unlock(word) {
  Atomics.store(word, 0, 0);
  Atomics.notify(word, 0, 1);
}

function rebuildIndex(seed) {
  let sum = seed;
  for (let i = 0; i < 8e6; i++) sum = (sum * 31 + i) | 0;
  return sum;
}

if (isMainThread) {
  const shared = new SharedArrayBuffer(8);
  let waited = 0, left = 4;
  for (let i = 0; i < 4; i++) {
    new Worker(__filename, { workerData: shared, argv: process.argv.slice(2) }).on('message', (ms) => {
      waited += ms;
      if (--left === 0) console.log(`waited ${(waited / 1000).toFixed(2)} s for the lock`);
    });
  }
} else {
  const word = new Int32Array(workerData);
  let waited = 0, sum = 0;
  const before = process.argv.includes('before');
  for (let i = 0; i < ROUNDS; i++) {
    if (before) sum += rebuildIndex(i);
    const begun = performance.now();
    lock(word);
    waited += performance.now() - begun;
    if (!before) sum += rebuildIndex(i);
    unlock(word);
  }
  parentPort.postMessage(waited + (sum & 0));
}
