// An HTTP server on port ARG that answers at once, but for /report: that derives a key, in its only thread.
// When it is told to end it prints how late its event loop was.
const crypto = require('crypto');
const http = require('http');
const { monitorEventLoopDelay } = require('perf_hooks');

const delay = monitorEventLoopDelay({ resolution: 10 });
delay.enable();
http.createServer((request, response) => {
  if (request.url === '/report') {
    response.end(crypto.pbkdf2Sync('word', 'salt', 150000, 64, 'sha512').toString('hex'));
  } else {
    response.end('ok');
  }
}).listen(Number(process.argv[2]), '127.0.0.1');
process.on('SIGTERM', () => {
  console.log(`event loop late by ${Math.round(delay.max / 1e6)} ms at most`);
  process.exit();
});
