// A shop with Express on port ARG, whose handler prices a cart before it answers. When it is told to end it prints how late its
// event loop was.
const express = require('express');
const { monitorEventLoopDelay } = require('perf_hooks');

const delay = monitorEventLoopDelay({ resolution: 10 });
delay.enable();
const app = express();

function priceCart(rows) {
  let sum = 0;
  for (let i = 0; i < rows; i++) sum = (sum * 31 + ((i * 7919) % 104729)) % 1000003;
  return sum;
}

app.use(express.json());
app.get('/', (request, response) => response.json({ sum: priceCart(3e6) }));
app.listen(Number(process.argv[2]), '127.0.0.1');
process.on('SIGTERM', () => {
  console.log(`event loop late by ${Math.round(delay.max / 1e6)} ms at most`);
  process.exit();
});
