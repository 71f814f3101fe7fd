// Makes a screenshot a third as large: a PNG with a palette of the 256 most frequent colours. Other colours, which
// occur on the edges of letters, become the nearest colour of the palette. Reads only PNGs as Chromium writes them: 8
// bits per channel, RGB or RGBA, not interlaced (PNG specification, third edition).
import { crc32, deflateSync, inflateSync } from 'node:zlib';

const signatureLength = 8;

/** Returns the smaller PNG. Throws for a kind of PNG that Chromium does not write. */
export function smallPng(png: Buffer): Buffer {
  const chunks = chunksOf(png);
  const header = chunks.find(({ type }) => type === 'IHDR')?.data;
  if (!header) throw new Error('not a PNG');
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  const [depth, colourType, , , interlace] = header.subarray(8);
  if (depth !== 8 || (colourType !== 2 && colourType !== 6) || interlace !== 0) throw new Error('not RGB or RGBA');
  const data = inflateSync(Buffer.concat(chunks.filter(({ type }) => type === 'IDAT').map((chunk) => chunk.data)));
  const size = colourType === 2 ? 3 : 4;
  const pixels = unfilter(data, { width, height, size });
  const colours = Array.from({ length: width * height }, (_, at) => pixels.readUIntBE(at * size, 3));
  const { palette, indexOf } = paletteOf(colours);
  const rows = Buffer.alloc(height * (width + 1));
  for (const [at, colour] of colours.entries())
    rows[Math.floor(at / width) * (width + 1) + 1 + (at % width)] = indexOf.get(colour) ?? 0;
  const smallHeader = Buffer.from(header);
  smallHeader[9] = 3;
  const colourBytes = Buffer.alloc(palette.length * 3);
  for (const [index, colour] of palette.entries()) colourBytes.writeUIntBE(colour, index * 3, 3);
  return Buffer.concat([
    png.subarray(0, signatureLength),
    chunk('IHDR', smallHeader),
    chunk('PLTE', colourBytes),
    chunk('IDAT', deflateSync(rows, { level: 9, memLevel: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function paletteOf(colours: readonly number[]): { palette: number[]; indexOf: Map<number, number> } {
  const counts = new Map<number, number>();
  for (const colour of colours) counts.set(colour, (counts.get(colour) ?? 0) + 1);
  const byCount = [...counts].sort(([a, countA], [b, countB]) => countB - countA || a - b).map(([colour]) => colour);
  const palette = byCount.slice(0, 256);
  const nearest = (colour: number) =>
    palette.reduce(
      (best, other, index) => (distance(colour, other) < distance(colour, palette[best] ?? 0) ? index : best),
      0,
    );
  return { palette, indexOf: new Map(byCount.map((colour) => [colour, nearest(colour)])) };
}

function distance(one: number, other: number): number {
  return [16, 8, 0].reduce((sum, shift) => sum + (((one >> shift) & 255) - ((other >> shift) & 255)) ** 2, 0);
}

function chunksOf(png: Buffer): { type: string; data: Buffer }[] {
  const chunks: { type: string; data: Buffer }[] = [];
  for (let at = signatureLength; at + 12 <= png.length; ) {
    const length = png.readUInt32BE(at);
    chunks.push({ type: png.toString('latin1', at + 4, at + 8), data: png.subarray(at + 8, at + 8 + length) });
    at += 12 + length;
  }
  return chunks;
}

function chunk(type: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, sum]);
}

/**
 * Reverses the filters (PNG specification, section 9), which store each byte as its difference from neighbouring bytes.
 */
function unfilter(data: Buffer, { width, height, size }: { width: number; height: number; size: number }): Buffer {
  const line = width * size;
  const pixels = Buffer.alloc(line * height);
  for (let y = 0; y < height; y += 1) {
    const filter = data[y * (line + 1)] ?? 0;
    for (let x = 0; x < line; x += 1) {
      const at = y * line + x;
      const left = x >= size ? (pixels[at - size] ?? 0) : 0;
      const up = y > 0 ? (pixels[at - line] ?? 0) : 0;
      const corner = x >= size && y > 0 ? (pixels[at - line - size] ?? 0) : 0;
      const predicted = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter] ?? 0;
      pixels[at] = (data[y * (line + 1) + 1 + x] ?? 0) + predicted;
    }
  }
  return pixels;
}

function paeth(left: number, up: number, corner: number): number {
  const guess = left + up - corner;
  const [byLeft, byUp, byCorner] = [Math.abs(guess - left), Math.abs(guess - up), Math.abs(guess - corner)];
  if (byLeft <= byUp && byLeft <= byCorner) return left;
  return byUp <= byCorner ? up : corner;
}
