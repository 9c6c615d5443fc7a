import type { TokenKind } from "./evm-tokens.ts";
import type { Random } from "./random.ts";

/** Where a payment is made. */
export const families = ["evm", "solana"] as const;
export type Family = (typeof families)[number];

const succeeds = ["succeeded"] as const;
const fails = ["cancelled", "expired", "failed"] as const;
const anyEnd = [...succeeds, ...fails] as const;

/** A kind's token, where it is not USDC; the ends it may have; whether the end may take until what was signed runs out. */
type KindRule = { token?: TokenKind; ends: readonly string[]; outlives?: true };

/**
 * What happens around a payment. `stranger`: a stranger relays its authorization as well. `blocked`, `spent`: the payer is
 * put on the token's block list, or spends the money elsewhere, while the payment is being made; for a while, or for good.
 * `late`: confirmed at the moment of its deadline. `test`: with a test key. `permit2`: by Permit2. `push`: by a
 * transaction of the buyer's own, which moves nothing when a reorg takes it and it is mined anew while its token is paused;
 * `stuck push`: by one that can never be mined. `wallet`: by a contract wallet (ERC-1271);
 * `burner`: by one that burns gas; `hostile`: by one that reverts with hostile text. `garbage`: a stranger who has seen
 * the payment confirms it with made-up signatures.
 */
export const kinds = {
  plain: { ends: succeeds },
  stranger: { ends: succeeds },
  blocked: { ends: ["succeeded", "cancelled", "failed"] },
  "blocked for good": { ends: anyEnd, outlives: true },
  spent: { ends: ["succeeded", "cancelled", "failed"] },
  "spent for good": { ends: anyEnd, outlives: true },
  late: { ends: ["succeeded", "expired"] },
  test: { ends: succeeds },
  permit2: { token: "permit2", ends: succeeds },
  "permit2 stranger": { token: "permit2", ends: succeeds },
  push: { token: "push", ends: ["succeeded", "expired"], outlives: true },
  "late push": { token: "push", ends: ["succeeded", "expired"], outlives: true },
  "stuck push": { token: "push", ends: ["cancelled", "expired"] },
  wallet: { ends: succeeds },
  burner: { ends: fails, outlives: true },
  hostile: { token: "permit2", ends: anyEnd, outlives: true },
  garbage: { ends: anyEnd },
} as const satisfies Record<string, KindRule>;
export type Kind = keyof typeof kinds;

/** The token that a payment of a kind is made with on EVM. */
export function tokenOf(kind: Kind): TokenKind {
  const rule: KindRule = kinds[kind];
  return rule.token ?? "usdc";
}

/** True when a payment of a kind may end only once the chain's clock has passed what its payer signed. */
export function mayOutlive(kind: Kind): boolean {
  const rule: KindRule = kinds[kind];
  return rule.outlives === true;
}

/** What a seed has in store that changes how payments may end. */
export type Conditions = {
  /** The issuer of a token starts a fee on transfers: what buyers push arrives in part only. */
  takesFees: boolean;
};

/**
 * How a payment of a kind may end; an honest one has only one end. On Solana it may also expire: what was signed dies
 * with its blockhash, and here blockhashes die.
 */
export function endsOf(
  { family, kind }: Pick<Plan, "family" | "kind">,
  { takesFees }: Conditions = { takesFees: false },
): readonly string[] {
  if (takesFees && tokenOf(kind) !== "usdc") return anyEnd;
  return family === "solana" && kind === "plain" ? [...kinds[kind].ends, "expired"] : kinds[kind].ends;
}

/** Shares of a run, in hundredths; the rest is plain. Without our signature nobody can submit what is paid on Solana. */
const shares: Record<Family, Partial<Record<Kind, number>>> = {
  evm: {
    ...{ stranger: 8, blocked: 3, "blocked for good": 2, spent: 3, "spent for good": 2, late: 3, test: 3 },
    ...{ permit2: 10, "permit2 stranger": 3, push: 8, "late push": 3, "stuck push": 1 },
    ...{ wallet: 4, burner: 2, hostile: 2, garbage: 2 },
  },
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
    lives: kind.startsWith("late") ? random.between(3, 6) : 600,
    repeatsCreation: random.chance(0.2),
    confirmsTwice: random.chance(0.2),
  }));
}

function deal(family: Family, payments: number): Pick<Plan, "family" | "kind">[] {
  const dealt = Object.entries(shares[family]).flatMap(([kind, share]) =>
    Array<Kind>(Math.max(1, Math.round((payments * share) / 100))).fill(kind as Kind),
  );
  const plain = Array<Kind>(Math.max(0, payments - dealt.length)).fill("plain");
  return [...dealt, ...plain].slice(0, payments).map((kind) => ({ family, kind }));
}
