// Parses the setting SIGN_IN_PAGES, with which operators adapt the failure pages: texts, a name, a line about support,
// a logo, and colours. Reports all problems together, each with its path in the JSON, and never quotes a value.
import { z } from 'zod';
import { issueMessage } from '../../service/http/issue-message.ts';
import { fieldErrors } from '../../service/http/problem.ts';
import { type PageName, pageNames } from './catalogue.ts';
import { contrastProblems, defaultPalettes, type Palette, type Scheme, schemes } from './colours.ts';
import { defaultTexts, type Language, languages, type PageTexts } from './texts.ts';

export interface PageSettings {
  texts: PageTexts;
  palettes: Record<Scheme, Palette>;
  /** The operator's name, shown above the message and in the title of the window. */
  name?: Partial<Record<Language, string | undefined>> | undefined;
  /** Says where people get help. Shown below the message. */
  support?: Partial<Record<Language, string | undefined>> | undefined;
  logo?: Logo | undefined;
}

export interface Logo {
  /** The URL of the image: a data: URL or an https URL. */
  src: string;
  /** Replaces `src` on dark screens. */
  darkSrc?: string | undefined;
  /** The alternative text of the logo. */
  alt: Record<Language, string>;
}

/** Maximum size of SIGN_IN_PAGES in bytes. Linux limits an environment variable to 128 KiB. */
const largest = 65_536;

const text = (most: number) =>
  z
    .string()
    .max(most)
    .regex(/^[^\p{Cc}]*\S[^\p{Cc}]*$/u, 'must be one line of text that is not empty');
const inLanguages = <T extends z.ZodType>(schema: T) =>
  z.strictObject({ en: schema.optional(), fr: schema.optional() });

const pageText = z.strictObject({
  title: text(100).optional(),
  happened: text(500).optional(),
  advice: text(500).optional(),
});
const texts = z.strictObject(
  Object.fromEntries(pageNames.map((name) => [name, inLanguages(pageText).optional()])) as Record<
    PageName,
    z.ZodOptional<ReturnType<typeof inLanguages<typeof pageText>>>
  >,
);

const colour = z
  .string()
  .regex(/^#[\dA-Fa-f]{6}$/, 'must be a colour such as #155e75')
  .transform((given) => given.toLowerCase());
const palette = z.strictObject({
  background: colour.optional(),
  surface: colour.optional(),
  text: colour.optional(),
  accent: colour.optional(),
});

const image = z
  .string()
  .max(32_768)
  .refine(
    isImage,
    'must be an https URL without credentials, query and fragment, or a data: URL of an image in base64',
  );

/** The schema of the JSON in SIGN_IN_PAGES and in the chart’s value tokenHandler.signInPages. */
export const pageSettingsSchema = z.strictObject({
  texts: texts.optional(),
  name: inLanguages(text(80)).optional(),
  support: inLanguages(text(300)).optional(),
  logo: z
    .strictObject({ src: image, darkSrc: image.optional(), alt: z.strictObject({ en: text(100), fr: text(100) }) })
    .optional(),
  colours: z.strictObject({ light: palette.optional(), dark: palette.optional() }).optional(),
});

type Given = z.output<typeof pageSettingsSchema>;

// An SVG image in <img> runs no scripts and loads nothing (HTML standard, section 4.8.4.4).
const dataImage =
  /^data:image\/(?:png|jpeg|gif|webp|svg\+xml);base64,(?:[A-Za-z\d+/]{4})+(?:[A-Za-z\d+/]{2}==|[A-Za-z\d+/]{3}=)?$/;
/** Accepts no characters that separate sources in a Content-Security-Policy. */
const httpsImage = /^https:\/\/[a-z\d.-]+(?::\d{1,5})?\/[\w./~%+=@-]*$/i;

function isImage(source: string): boolean {
  return dataImage.test(source) || (httpsImage.test(source) && URL.canParse(source));
}

/**
 * Parses a JSON string. Returns the settings, or the problems of the JSON. Returns the default settings if `json` is
 * undefined.
 */
export function parsePageSettings(json: string | undefined): { settings: PageSettings } | { problems: string[] } {
  if (json === undefined) return { settings: settingsOf({}) };
  if (Buffer.byteLength(json) > largest) return { problems: [`must have at most ${largest} bytes`] };
  let given: unknown;
  try {
    given = JSON.parse(json);
  } catch {
    return { problems: ['must be JSON'] };
  }
  const parsed = pageSettingsSchema.safeParse(given, { error: issueMessage });
  if (!parsed.success)
    return { problems: fieldErrors(parsed.error).map(({ pointer, detail }) => `${pointer} ${detail}`.trimStart()) };
  const settings = settingsOf(parsed.data);
  const problems = schemes.flatMap((scheme) =>
    contrastProblems(settings.palettes[scheme]).map((problem) => `/colours/${scheme} ${problem}`),
  );
  return problems.length > 0 ? { problems } : { settings };
}

function settingsOf({ texts: given = {}, colours = {}, name, support, logo }: Given): PageSettings {
  const merged = pageNames.map((page) => {
    const both = languages.map((language) => [
      language,
      { ...defaultTexts[page][language], ...given[page]?.[language] },
    ]);
    return [page, Object.fromEntries(both)];
  });
  const palettes = {
    light: { ...defaultPalettes.light, ...colours.light },
    dark: { ...defaultPalettes.dark, ...colours.dark },
  };
  return { texts: Object.fromEntries(merged), palettes: palettes as PageSettings['palettes'], name, support, logo };
}
