// All adversaries, in the order in which --help lists them.
import { formAborts, uploadAborts } from './aborts.ts';
import type { Adversary } from './adversary.ts';
import { codeRaces } from './code-races.ts';
import { addressFloods, mailFloods, registerFloods, tokenFloods } from './floods.ts';
import { hostileBodies } from './hostile-bodies.ts';
import { hostileConfigurationSchemas, hostileSubmits, wrongItems } from './hostile-schemas.ts';
import { hostileTemplates } from './hostile-templates.ts';
import { hostileUpstream } from './hostile-upstream.ts';
import { poisonedRows } from './poisoned-rows.ts';
import { framing, garbage, slowHeads } from './raw-requests.ts';
import { rowLocks } from './row-locks.ts';
import { slowUploads, unreadDownloads } from './slow-bodies.ts';
import { databaseOutage, redisRestarts, terminatedConnections } from './store-faults.ts';
import { downloadsAfterLogout, headerClaims, pathAttacks, streamFloods } from './target-attacks.ts';

export const adversaries: Adversary[] = [
  uploadAborts,
  formAborts,
  slowUploads,
  unreadDownloads,
  streamFloods,
  pathAttacks,
  headerClaims,
  downloadsAfterLogout,
  hostileUpstream,
  framing,
  garbage,
  slowHeads,
  hostileTemplates,
  hostileConfigurationSchemas,
  hostileSubmits,
  wrongItems,
  hostileBodies,
  poisonedRows,
  rowLocks,
  registerFloods,
  addressFloods,
  tokenFloods,
  mailFloods,
  codeRaces,
  terminatedConnections,
  databaseOutage,
  redisRestarts,
];
