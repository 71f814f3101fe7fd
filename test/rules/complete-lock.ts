// `npm run lock`: run it after you add or update a package. It adds to package-lock.json the packages for other
// platforms that npm left out because the registry does not have them.
import { readFileSync, writeFileSync } from 'node:fs';
import { completeLockFile, type LockFile, missingPlatformPackages } from './lock-file.ts';

const lock: LockFile = JSON.parse(readFileSync('package-lock.json', 'utf8'));
const missing = Object.keys(missingPlatformPackages(lock));
if (missing.length > 0) writeFileSync('package-lock.json', `${JSON.stringify(completeLockFile(lock), null, 2)}\n`);
console.log(`package-lock.json: ${missing.length} packages for other platforms added.`);
