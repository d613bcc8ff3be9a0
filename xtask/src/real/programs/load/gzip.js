// A server whose handler compresses with the synchronous form.
const http = require('http');
const zlib = require('zlib');
const { monitorEventLoopDelay } = require('perf_hooks');

const late = monitorEventLoopDelay({ resolution: 10 });
late.enable();
const rows = Buffer.from(Array.from({ length: 40000 }, (_, i) => 'row ' + ((i * 7919) % 1000)).join('\n'));

function exportRows() {
  return zlib.gzipSync(rows);
}

http.createServer((request, response) => response.end(exportRows())).listen(Number(process.argv[2]), '127.0.0.1');
process.on('SIGTERM', () => {
  console.log(`event loop late by ${Math.round(late.max / 1e6)} ms at most`);
  process.exit();
});
