/** Seeded random numbers: the same seed gives the same plan, independent of the machine's timing. */
export type Random = {
  /** Returns a whole number, both ends included. */
  between(least: number, most: number): number;
  chance(share: number): boolean;
  pick<T>(from: readonly T[]): T;
  shuffle<T>(items: readonly T[]): T[];
  /** Returns an independent source, so that the number of draws from one does not change the draws from another. */
  branch(name: string): Random;
};

/** Mulberry32, with the seed and the branch's name hashed by FNV-1a. */
export function createRandom(seed: number, name = ""): Random {
  let state = hash(`${seed} ${name}`);
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const between = (least: number, most: number) => least + Math.floor(next() * (most - least + 1));
  return {
    between,
    chance: (share) => next() < share,
    pick: (from) => {
      if (from.length === 0) throw new Error("the list to pick from is empty");
      return from[between(0, from.length - 1)] as (typeof from)[number];
    },
    shuffle(items) {
      const left = [...items];
      return items.map(() => left.splice(between(0, left.length - 1), 1)[0] as (typeof items)[number]);
    },
    branch: (inner) => createRandom(seed, `${name}/${inner}`),
  };
}

function hash(text: string): number {
  let value = 0x811c9dc5;
  for (const byte of Buffer.from(text)) value = Math.imul(value ^ byte, 0x01000193);
  return value >>> 0;
}
