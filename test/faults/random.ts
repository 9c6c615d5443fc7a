/** Chance that a seed decides: the same seed makes the same plan again, whatever the machine's timing. */
export type Random = {
  /** A whole number, both ends among them. */
  between(least: number, most: number): number;
  chance(share: number): boolean;
  pick<T>(from: readonly T[]): T;
  shuffle<T>(items: readonly T[]): T[];
  /** A source of its own, so that who draws more often does not change what another one draws. */
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
      if (from.length === 0) throw new Error("there is nothing to pick from");
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
