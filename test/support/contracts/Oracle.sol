// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// Knows sanctioned accounts, as the oracle does that Chainalysis runs; and can be made to say nothing.
contract Oracle {
    mapping(address => bool) private sanctioned;
    bool private silent;

    function name_(address account, bool is_) external {
        sanctioned[account] = is_;
    }

    function silence(bool on) external {
        silent = on;
    }

    function isSanctioned(address account) external view returns (bool) {
        require(!silent, "no answer");
        return sanctioned[account];
    }
}
