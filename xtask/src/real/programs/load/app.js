// An HTTP server on port ARG. /report sorts and prints rows in its only thread, /key derives a key in the pool of libuv;
// /, which everybody asks for, answers at once. When it is told to end it prints how late its event loop was, and how long
// the pool took.
const crypto = require('crypto');
const http = require('http');
const { monitorEventLoopDelay } = require('perf_hooks');

const delay = monitorEventLoopDelay({ resolution: 10 });
delay.enable();
let keys = 0, longest = 0;

function buildReport() {
  const rows = [];
  for (let i = 0; i < 60000; i++) rows.push({ id: (i * 7919) % 60013, name: 'row ' + i });
  rows.sort((a, b) => a.id - b.id);
  return rows.map((row) => row.name + row.id).join('\n').length;
}

http.createServer((request, response) => {
  if (request.url === '/report') {
    response.end(String(buildReport()));
  } else if (request.url === '/key') {
    const begun = Date.now();
    crypto.pbkdf2('word', 'salt', 20000, 64, 'sha512', (error, key) => {
      keys++;
      longest = Math.max(longest, Date.now() - begun);
      response.end(key.toString('hex'));
    });
  } else {
    response.end('ok');
  }
}).listen(Number(process.argv[2]), '127.0.0.1');
process.on('SIGTERM', () => {
  console.log(`event loop late by ${Math.round(delay.max / 1e6)} ms at most; ${keys} keys, ${longest} ms at most`);
  process.exit();
});
