// `npm run docs`: writes docs/configuration.md anew.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { configurationReference, processes } from './configuration-reference.ts';

writeFileSync(join(import.meta.dirname, '../../docs/configuration.md'), configurationReference(processes));
