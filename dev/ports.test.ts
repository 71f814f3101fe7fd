// Tests the choice of ports for programs that listen later.
import { expect, it } from 'vitest';
import { findFreePort } from './ports.ts';

it('programs that have not started yet get different ports', async () => {
  const ports: number[] = [];
  // With random ports alone, 400 of 22,000 would all differ in one of forty runs.
  for (let count = 0; count < 400; count += 1) ports.push(await findFreePort());
  expect(new Set(ports).size).toBe(400);
});
