// The deck: questions and their answers, and how a card is picked.
// It knows nothing of HTTP.
'use strict';

const facts = [
  ['What does the mark on a ship\'s hull show?', 'How deep it may be loaded.'],
  ['What grows first when a queue forms?', 'The time spent waiting.'],
  ['What is concurrency?', 'Requests in flight at once.'],
  ['What is QPS at a fixed concurrency?', 'Concurrency divided by the mean response time.'],
  ['Which latency do most users remember?', 'The slowest one they met.'],
  ['What does a limiter protect?', 'Everyone else.'],
  ['What does a cache trade for speed?', 'Freshness.'],
  ['What does an index cost?', 'Every write.'],
  ['What is a bottleneck?', 'The one resource that is full.'],
  ['What should be measured first?', 'The measuring tool.'],
];

const copies = 10;

const deck = [];
for (let copy = 0; copy < copies; copy++) {
  for (const [question, answer] of facts) {
    deck.push({ id: deck.length + 1, question, answer });
  }
}

/** The card with this id, or undefined. */
function card(id) {
  return deck[id - 1];
}

/** `count` different cards; `random()` gives numbers from 0 up to 1. */
function pick(count, random) {
  const chosen = new Set();
  while (chosen.size < Math.min(count, deck.length)) {
    chosen.add(Math.floor(random() * deck.length));
  }
  return [...chosen].map((index) => deck[index]);
}

module.exports = { deck, card, pick };
