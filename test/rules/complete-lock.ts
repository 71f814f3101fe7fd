// `npm run lock`: run it after you add or update a package. A registry may lack the packages for other platforms, and
// npm then leaves them out of package-lock.json. This script adds the missing entries, so that `npm ci` works on those
// platforms too.
import { readFileSync, writeFileSync } from 'node:fs';
import { completeLockFile, type LockFile, missingPlatformPackages } from './lock-file.ts';

const lock: LockFile = JSON.parse(readFileSync('package-lock.json', 'utf8'));
const missing = Object.keys(missingPlatformPackages(lock));
if (missing.length > 0) writeFileSync('package-lock.json', `${JSON.stringify(completeLockFile(lock), null, 2)}\n`);
console.log(`package-lock.json: ${missing.length} packages for other platforms added.`);
