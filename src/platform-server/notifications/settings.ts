// Reads the notification types and the sender of a tenant. Each event, each notice and many requests need them, and the
// document that contains them may be large. It is therefore read and parsed again only after it has changed.
import { LRUCache } from 'lru-cache';
import { memoryOf } from '../../platform/document-budget.ts';
import type { ConfigurationStore } from '../configuration/store.ts';
import { type NotificationType, notificationsHome, notificationTypes, senderOf } from './notification-type.ts';

export interface NotificationSettings {
  types: Map<string, NotificationType>;
  /** The sender that the tenant has chosen, which it may not be allowed to use. */
  sender: string | undefined;
}

interface Versioned {
  version: string;
  settings: NotificationSettings;
}

export type SettingsCache = LRUCache<string, Versioned>;
export type SettingsReads = Pick<ConfigurationStore, 'latestVersion' | 'latestOfBoth'>;

/** Maximum estimated memory of the settings that a process keeps. */
const mostMemory = 64 * 1_048_576;

export function createSettingsCache(): SettingsCache {
  return new LRUCache({
    maxSize: mostMemory,
    // Settings that an earlier version stored may exceed the maximum. They are kept alone, because parsing them for
    // each event would cost more.
    sizeCalculation: ({ settings }) => Math.min(mostMemory, memoryOf([...settings.types.values()]) + 1_024),
  });
}

/** Returns a function that reads the settings of a tenant. A change has an effect at once. */
export function createNotificationSettings(kept: SettingsCache, reads: SettingsReads) {
  /** Reads in progress, so that a burst of events after a change does not parse the document several times. */
  const reading = new Map<string, Promise<NotificationSettings>>();

  async function read(tenant: string, version: string): Promise<NotificationSettings> {
    const documents = await reads.latestOfBoth(tenant, notificationsHome);
    const settings = { types: notificationTypes(documents), sender: senderOf(documents.tenant) };
    // If the documents have changed since the version was read, the next call reads them again.
    kept.set(tenant, { version, settings });
    return settings;
  }

  return async (tenant: string): Promise<NotificationSettings> => {
    const version = await reads.latestVersion(tenant, notificationsHome);
    const known = kept.get(tenant);
    if (known?.version === version) return known.settings;
    const key = `${tenant} ${version}`;
    const running = reading.get(key) ?? read(tenant, version).finally(() => reading.delete(key));
    reading.set(key, running);
    return running;
  };
}
