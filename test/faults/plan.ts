import type { Random } from "./random.ts";

/** Where a payment is made. */
export const families = ["evm", "solana"] as const;
export type Family = (typeof families)[number];

/**
 * What happens around a payment. `stranger`: somebody else relays its authorization as well. `blocked`, `spent`: the
 * payer is put on the token's block list, or spends the money elsewhere, while it is being paid; for a while, or for
 * good. `late`: confirmed in the moment of its deadline. `test`: with a test key.
 */
export type Kind = "plain" | "stranger" | "blocked" | "blocked for good" | "spent" | "spent for good" | "late" | "test";

/**
 * How a payment of a kind may end; an honest one has only one end. On Solana it may also expire: what was signed dies with
 * its blockhash, and here blockhashes die.
 */
export function endsOf({ family, kind }: Pick<Plan, "family" | "kind">): readonly string[] {
  return family === "solana" && kind === "plain" ? [...ends[kind], "expired"] : ends[kind];
}

const ends: Readonly<Record<Kind, readonly string[]>> = {
  plain: ["succeeded"],
  stranger: ["succeeded"],
  blocked: ["succeeded", "cancelled"],
  "blocked for good": ["succeeded", "cancelled", "expired"],
  spent: ["succeeded", "cancelled"],
  "spent for good": ["succeeded", "cancelled", "expired"],
  late: ["succeeded", "expired"],
  test: ["succeeded"],
};

/** Shares of a run, in hundredths; what is left is plain. Without our signature nobody can submit what is paid on Solana. */
const shares: Record<Family, Partial<Record<Kind, number>>> = {
  evm: { stranger: 12, blocked: 4, "blocked for good": 2, spent: 4, "spent for good": 2, late: 4, test: 4 },
  solana: { "spent for good": 4, late: 4, test: 4 },
};
/** Of a run on both, so many hundredths are paid on Solana. */
const onSolana = 35;

export type Plan = {
  index: number;
  family: Family;
  kind: Kind;
  /** When the merchant asks for it, milliseconds after the beginning. */
  at: number;
  cents: number;
  /** Seconds until its deadline. */
  lives: number;
  /** The merchant's server sends its creation again, and once with another body under the same key. */
  repeatsCreation: boolean;
  /** The wallet sends its confirm twice at the same time. */
  confirmsTwice: boolean;
};

/** So many payments, spread evenly, every kind among them. */
export function planPayments(
  random: Random,
  args: { payments: number; everyMs: number; chains: readonly Family[] },
): Plan[] {
  const { payments, everyMs, chains } = args;
  const there = chains.length === 1 ? payments : Math.round((payments * onSolana) / 100);
  const dealt = [
    ...(chains.includes("evm") ? deal("evm", payments - (chains.includes("solana") ? there : 0)) : []),
    ...(chains.includes("solana") ? deal("solana", there) : []),
  ];
  return random.shuffle(dealt).map(({ family, kind }, index) => ({
    index,
    family,
    kind,
    at: index * everyMs + random.between(0, everyMs),
    cents: random.between(1, 5_000),
    lives: kind === "late" ? random.between(3, 6) : 600,
    repeatsCreation: random.chance(0.2),
    confirmsTwice: random.chance(0.2),
  }));
}

function deal(family: Family, payments: number): Pick<Plan, "family" | "kind">[] {
  const kinds = Object.entries(shares[family]).flatMap(([kind, share]) =>
    Array<Kind>(Math.max(1, Math.round((payments * share) / 100))).fill(kind as Kind),
  );
  const plain = Array<Kind>(Math.max(0, payments - kinds.length)).fill("plain");
  return [...kinds, ...plain].slice(0, payments).map((kind) => ({ family, kind }));
}
