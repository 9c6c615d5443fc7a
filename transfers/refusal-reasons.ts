/** Reason for rejecting a payer that has burned gas. Buyers see it. */
export const PAYER_BARRED =
  "the account cannot pay here for now: earlier payments from it failed on the chain or took too much gas";

/** Reason for rejecting a push that failed in its block and moved nothing. */
export const REVERTED = "the transaction failed";
