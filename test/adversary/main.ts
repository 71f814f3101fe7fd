// scratch
import { startPostgres } from '../../src/embedded/postgres/postgres.ts';
import { mkdtemp, chmod } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { startWorld } from './world/world.ts';
import { startHonestUsers } from './honest/honest.ts';
import { createRandom } from './random.ts';
const d = await mkdtemp('/tmp/adv-'); await chmod(d,0o755);
const pgs = await startPostgres({directory: d+'/pg', password:'x', settings:{fsync:'off',max_connections:'300'}});
console.time('world');
const world = await startWorld(pgs.url);
console.timeEnd('world');
const h = startHonestUsers(world, createRandom('1'));
h.recorder.phase='x';
await delay(8000);
const by = Map.groupBy(h.recorder.samples, s=>s.kind);
for (const [k,v] of by) { const m=v.map(s=>s.milliseconds).sort((a,b)=>a-b); console.log(k, m.length, m[m.length>>1].toFixed(1), m[Math.floor(m.length*.99)].toFixed(1)); }
console.log(h.recorder.failures.slice(0,10), world.exits);
for (const r of world.replicas) console.log(r.place.name, await r.footprint());
await h.stop(); console.log('stopped');
await world.close(); await pgs.stop();
