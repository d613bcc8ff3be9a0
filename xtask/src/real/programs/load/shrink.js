// A server that gives its pictures to one worker thread.
const { Worker, isMainThread, parentPort } = require('worker_threads');
const http = require('http');
const { monitorEventLoopDelay } = require('perf_hooks');

function shrinkPicture(key) {
  let value = key;
  for (let i = 0; i < 4e6; i++) value = (value * 31 + i) | 0;
  return value;
}

if (isMainThread) {
  const late = monitorEventLoopDelay({ resolution: 10 });
  late.enable();
  const worker = new Worker(__filename);
  const waiting = new Map();
  let number = 0;
  let most = 0;
  worker.on('message', (key) => {
    waiting.get(key).end('done');
    waiting.delete(key);
  });
  const serve = (request, response) => {
    waiting.set(++number, response);
    most = Math.max(most, waiting.size);
    worker.postMessage(number);
  };
  http.createServer(serve).listen(Number(process.argv[2]), '127.0.0.1');
  process.on('SIGTERM', () => {
    console.log(`event loop late by ${Math.round(late.max / 1e6)} ms at most; up to ${most} pictures waited`);
    process.exit();
  });
} else {
  parentPort.on('message', (key) => {
    shrinkPicture(key);
    parentPort.postMessage(key);
  });
}
