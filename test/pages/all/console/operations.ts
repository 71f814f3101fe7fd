// Tests the actions of the console on operations.
import { expect, it } from 'vitest';
import type { ConsoleSuite } from '../../console-suite.ts';
import { findFaults, settled } from '../../console-world.ts';

export function testOperations(suite: ConsoleSuite): void {
  it('operations: shows counts, and releases an item of the quarantine', async () => {
    const page = await suite.open('/operations');
    await page.getByText('Undelivered events and calls').waitFor();
    await page.getByText('Nothing is in quarantine.').waitFor();
    await page.getByText('of 32,768 MiB').waitFor();
    const answer = page.waitForResponse((response) => response.url().endsWith('/form/v1/operations'));
    await page.getByRole('button', { name: 'Read again' }).click();
    expect((await answer).status()).toBe(200);
    await settled(page);
    const { rows } = await suite.world.pool.query('SELECT tenant_id FROM forms WHERE id = $1', [suite.formId]);
    await suite.world.pool.query(
      `INSERT INTO quarantine (kind, item, tenant_id, about, reason, detail, first_seen, last_tried, attempts, version)
       VALUES ('form', $1, $2, $3, 'rejected', 'status 400', now(), now(), 3, '0.0.0')`,
      [suite.formId, rows[0].tenant_id, JSON.stringify({ formId: suite.formId })],
    );
    await page.reload();
    await page.getByRole('button', { name: /^Release/ }).click();
    await page.getByText('The item is released').waitFor();
    await page.getByRole('cell', { name: 'Released' }).waitFor();
    await page.locator('.done:focus').waitFor();
    expect(await findFaults(page)).toEqual([]);
  });

  it('operations: a quarantine of more than 25 items has pages', async () => {
    const { rows } = await suite.world.pool.query('SELECT tenant_id FROM forms WHERE id = $1', [suite.formId]);
    await suite.world.pool.query(
      `INSERT INTO quarantine (kind, item, tenant_id, about, reason, detail, first_seen, last_tried, attempts, version)
       SELECT 'form', gen_random_uuid()::text, $1, '{}', 'rejected', 'status 400', now(), now(), 1, '0.0.0'
       FROM generate_series(1, 26)`,
      [rows[0].tenant_id],
    );
    const page = await suite.open('/operations');
    const items = page.getByRole('region', { name: 'Table: Items in quarantine' }).getByRole('rowheader');
    await expect.poll(() => items.count()).toBe(25);
    await page.getByRole('link', { name: 'Next page' }).click();
    await page.locator('[role=status]:focus', { hasText: /^\d+ items? on this page$/ }).waitFor();
    await expect.poll(() => items.count()).toBeLessThan(25);
    expect(await findFaults(page)).toEqual([]);
    await page.getByRole('link', { name: 'First page' }).click();
    await expect.poll(() => items.count()).toBe(25);
  });
}
