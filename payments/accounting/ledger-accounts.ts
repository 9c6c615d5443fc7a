/** The accounts of the ledger. Assets that we hold are debits; amounts that we owe are credits. */
export const accounts = {
  /** Balance of our receiving account. */
  treasury: "treasury",
  /** Amount that we owe a merchant. */
  payable: (merchantId: string) => `payable:${merchantId}`,
  /** Balance of the operator's cold address: what was moved there from our receiving account. */
  cold: "cold",
  /** Clearing account for money received in one asset and owed in another. The operator rebalances the inventory. */
  exchange: "exchange",
  /** Fees that the operator has taken. */
  fees: "fees",
  /** Payouts and refunds that have left a merchant's balance and have not arrived yet. */
  inTransit: "in_transit",
  /** Money that arrived and is not assigned to a merchant yet. */
  exceptions: "exceptions",
  /** Native balance of a lane; `address` is the lane's. */
  lane: (address: string) => `lane:${address}`,
  /** Gas that our transactions have cost. */
  gasSpent: "gas_spent",
  /** Money that an operator has written off, or booked as a gain. */
  losses: "losses",
  /** Rent deposits of the Solana accounts that we have created. */
  rent: "rent",
  /** Capital that the operator has paid in and not withdrawn. */
  capital: "operator_capital",
} as const;
