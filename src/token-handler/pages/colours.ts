// The colours of the pages, for light and dark screens. Rejects colours whose contrast is below level AA of WCAG 2.2.

export const schemes = ['light', 'dark'] as const;

export type Scheme = (typeof schemes)[number];

/** Each colour has the form #rrggbb in lower case. */
export interface Palette {
  /** The colour behind the panel that holds the message. */
  background: string;
  /** The colour of the panel. */
  surface: string;
  text: string;
  /** The colour of the button, of links, and of the line above the panel. */
  accent: string;
}

export const defaultPalettes: Record<Scheme, Palette> = {
  light: { background: '#f3f4f6', surface: '#ffffff', text: '#1a1f27', accent: '#155e75' },
  dark: { background: '#14171c', surface: '#1d2127', text: '#e8eaed', accent: '#67cfe8' },
};

/** Minimum contrast ratios by WCAG 2.2, success criteria 1.4.3 (text) and 1.4.11 (parts of controls). */
const [ofText, ofControls] = [4.5, 3];

/** Returns the problems of a palette. Each problem names a pair of colours and their contrast. */
export function contrastProblems(palette: Palette): string[] {
  const pairs: [foreground: keyof Palette, behind: keyof Palette, least: number][] = [
    ['text', 'background', ofText],
    ['text', 'surface', ofText],
    ['accent', 'surface', ofText],
    ['accent', 'background', ofControls],
  ];
  return pairs
    .map(([foreground, behind, least]) => ({
      foreground,
      behind,
      least,
      contrast: contrast(palette[foreground], palette[behind]),
    }))
    .filter(({ contrast, least }) => contrast < least)
    .map(
      ({ foreground, behind, least, contrast }) =>
        `${foreground} on ${behind} has a contrast of ${(Math.floor(contrast * 100) / 100).toFixed(2)}:1, less than ${least}:1 (WCAG AA)`,
    );
}

/** Returns white or black, whichever has more contrast with the colour. The contrast is always at least 4.58:1. */
export function labelOn(colour: string): string {
  return contrast('#ffffff', colour) >= contrast('#000000', colour) ? '#ffffff' : '#000000';
}

/** Returns the contrast ratio as WCAG 2.2 defines it. */
export function contrast(one: string, other: string): number {
  const [darker = 0, lighter = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (lighter + 0.05) / (darker + 0.05);
}

/** Returns the relative luminance as WCAG 2.2 defines it. */
function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const share = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
