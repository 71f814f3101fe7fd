// Checks that the mail server can be reached, and accepts the credentials of SMTP_URL. Sends no mail.
import { createTransport } from 'nodemailer';
import { failureFacts, smtpSettings } from '../../platform-server/mail.ts';
import { within } from '../../service/time-limit.ts';
import type { Finding } from './finding.ts';

/** `timeLimit` is in milliseconds. */
export async function checkMail(url: string, timeLimit: number): Promise<Finding[]> {
  const late = Object.assign(new Error('no reply in time'), { code: 'ETIMEDOUT' });
  try {
    await within(createTransport(smtpSettings(url)).verify(), timeLimit, late);
    return [];
  } catch (error) {
    return [explain(error as { code?: string; responseCode?: number })];
  }
}

/** Reports no text of the error, because it contains the server's reply. */
function explain(error: { code?: string; responseCode?: number }): Finding {
  const isLogin = error.code === 'EAUTH';
  // Replies below 500 are temporary. Without a reply, only a user without a password is certainly a mistake.
  const isWrong = error.responseCode === undefined ? isLogin : error.responseCode >= 500;
  const what = isLogin ? 'the mail server does not accept the user and password' : 'the mail server cannot be used';
  return {
    severity: isWrong ? 'error' : 'unreachable',
    name: 'SMTP_URL',
    problem: `${what} (${failureFacts(error)})`,
  };
}
