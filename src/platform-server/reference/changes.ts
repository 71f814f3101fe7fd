// Edits configuration in the same way as the reference implementation. An edit reads, merges and writes a whole
// document without a lock or a version, so concurrent edits of one document undo each other. A member `META_x` is
// stored as `$x`, and an object with a member `_bsontype` is not stored at all.
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { isObject } from '../../service/json-value.ts';
import { type ChangeOptions, type ConfigurationChanges, inChange, overwrite } from '../configuration/changes.ts';
import { checkedValue } from '../configuration/checked-value.ts';
import { createConfigurationStore } from '../configuration/store.ts';

/** `delay` is the time between reading and writing, in milliseconds. */
export function createUnlockedEdit(options: ChangeOptions, delay: number): ConfigurationChanges['edit'] {
  return async (key, edit, actor) => {
    const { latest } = await createConfigurationStore(options.tenantPool.of(key.scope)).read(key);
    const configuration = asStored(await checkedValue(options, key, latest?.configuration, edit));
    if (latest && isDeepStrictEqual(latest.configuration, configuration)) return latest;
    await sleep(delay);
    return inChange(options, key, actor, (change) => overwrite(change, latest, configuration, edit));
  };
}

const dropped = Symbol('dropped');

/** Returns a value in the form in which the reference implementation's database returns it. */
export function asStored(value: unknown): unknown {
  const stored = store(value);
  return stored === dropped ? {} : stored;
}

function store(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(store).filter((item) => item !== dropped);
  if (!isObject(value)) return value;
  if (Object.hasOwn(value, '_bsontype')) return dropped;
  const members = Object.entries(value).map(([name, member]) => [name.replace(/^META_/, '$'), store(member)] as const);
  return Object.fromEntries(members.filter(([, member]) => member !== dropped));
}
