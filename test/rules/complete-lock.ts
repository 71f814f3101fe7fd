// `npm run lock`, for use after a package was added or updated: adds the packages for other platforms to
// package-lock.json that npm left out because the registry does not have them.
import { readFileSync, writeFileSync } from 'node:fs';
import { completeLockFile, type LockFile, missingPlatformPackages } from './lock-file.ts';

const lock: LockFile = JSON.parse(readFileSync('package-lock.json', 'utf8'));
const missing = Object.keys(missingPlatformPackages(lock));
if (missing.length > 0) writeFileSync('package-lock.json', `${JSON.stringify(completeLockFile(lock), null, 2)}\n`);
console.log(`package-lock.json: ${missing.length} packages for other platforms added.`);
