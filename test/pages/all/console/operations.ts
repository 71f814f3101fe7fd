// Tests the actions of the console on sessions and on operations.
import { expect, it, onTestFinished } from 'vitest';
import type { ConsoleSuite } from '../../console-suite.ts';
import { findFaults } from '../../console-world.ts';

export function testOperations(suite: ConsoleSuite): void {
  it('sessions: an administrator ends the session of another person', async () => {
    const other = await suite.world.context();
    onTestFinished(() => other.close());
    await suite.world.signIn(other, '/sessions', 'alice');
    const page = await suite.open('/sessions');
    await page.getByRole('button', { name: /End the session of Alice/ }).click();
    await page.getByText('The session of Alice Applicant has ended.').waitFor();
  });

  it('operations: shows counts, and releases an item of the quarantine', async () => {
    const page = await suite.open('/operations');
    await page.getByText('Undelivered events and calls').waitFor();
    await page.getByText('Nothing is in quarantine.').waitFor();
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
    expect(await findFaults(page)).toEqual([]);
  });
}
