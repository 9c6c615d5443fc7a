import { type Refusal, refuse } from "../error-codes.ts";

/** Refuses a rotation while the secret before the last one works: it may be the only one that the merchant has deployed. */
export function refuseToEndFormer(worksUntil: Date | null, now: Date): Refusal | undefined {
  if (!worksUntil || worksUntil <= now) return undefined;
  const until = worksUntil.toISOString();
  const message = `the secret before the last rotation works until ${until}, and another rotation would end it at once`;
  return refuse("invalid_state", `${message}; use --now to end every secret except the new one`);
}
